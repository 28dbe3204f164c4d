// Pieces of C: how a product is cut, and how one thread walks a block of C with packed operands.
#pragma once

#include "core/context.h"
#include "core/problem.h"
#include "micro_kernel.h"
#include "pack.h"
#include "plan/cpu_blocking.h"

namespace fl {
namespace {

constexpr int64_t smaller(int64_t x, int64_t y) { return x < y ? x : y; }
constexpr int64_t larger(int64_t x, int64_t y) { return x > y ? x : y; }

// `total` things in `parts` parts whose sizes differ by one at most.
struct Split {
  int64_t total, parts;
  int64_t begin(int64_t i) const { return total * i / parts; }
  int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
  struct Part {
    int64_t begin, size;
  };
};

// C = beta C for a product without terms.
inline void scale(const SgemmArgs& p) {
  for (int64_t batch = 0; batch < p.batch; ++batch)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        float& c = p.c.data[batch * p.c.bs + i * p.c.rs + j * p.c.cs];
        c = p.beta == 0.0f ? 0.0f : p.beta * c;
      }
}

// One tile, through one on the stack, of `most` floats in rows of `pitch`, if the columns of C are not neighbours.
template <int64_t most>
void put_tile(TileFunction f, Tile& t, int64_t rows, int64_t c_cs, int64_t pitch) {
  if (c_cs == 1) return f(t);
  float staged[most];
  float* const c = t.c;
  const int64_t c_rs = t.c_rs;
  if (!t.first || t.beta != 0.0f)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < t.width; ++j) staged[i * pitch + j] = c[i * c_rs + j * c_cs];
  t.c = staged;
  t.c_rs = pitch;
  f(t);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < t.width; ++j) c[i * c_rs + j * c_cs] = staged[i * pitch + j];
  t.c = c;
  t.c_rs = c_rs;
}

struct Buffers {
  float *a, *b;
  const PrepackedOperands* prepacked = nullptr;  // of kernels that split their operands
};
// Who waits for the call, asked by the thread of a slot before it goes on with so many steps.
struct Waiting {
  Watch* watch;
  int slot;
  bool goes_on(int64_t steps) const { return !watch || watch->goes_on(*watch, steps, slot); }
};
// A rectangle of C.
struct Block {
  int64_t i, m, j, n;
};

// The cut of one product into tasks.
struct Tasks {
  const SgemmArgs& p;
  int64_t NR;
  Grid grid;
  Split rows, panels;
  int64_t each;

  Tasks(const SgemmArgs& p, const CpuBlocking& cut, int threads)
      : p(p),
        NR(cut.NR),
        grid(task_grid(p, cut, threads)),
        rows{p.m, grid.rows},
        panels{ceil_div(p.n, NR), grid.columns},
        each(grid.rows * grid.columns) {}
  Block block(int64_t index) const {
    const int64_t r = index / grid.columns, j = panels.begin(index % grid.columns) * NR;
    return {rows.begin(r), rows.size(r), j, smaller(panels.begin(index % grid.columns + 1) * NR, p.n) - j};
  }
};

template <class S>
class BlockProduct {
  static constexpr int64_t NR = S::NV * S::W, tile_floats = S::MR * NR;

 public:
  static constexpr CpuBlocking blocking = S::blocking;
  using RowStrips = Split;  // all about as long
  static constexpr int64_t least_strips = 1;

  BlockProduct(const SgemmArgs& p, int64_t batch, Buffers buffers, Waiting waiting)
      : p_(p),
        a_(p.a.data + batch * p.a.bs),
        b_(p.b.data + batch * p.b.bs),
        c_(p.c.data + batch * p.c.bs),
        buffers_(buffers),
        waiting_(waiting) {}

  void run(const Block& block) {
    const Split panels{ceil_div(block.n, NR), ceil_div(block.n, blocking.NC)};
    for (int64_t s = 0; s < panels.parts; ++s) {
      const int64_t j = panels.begin(s) * NR, n = smaller(panels.size(s) * NR, block.n - j);
      for (int64_t k = 0; k < p_.k; k += blocking.KC)
        run_slice({block.i, block.m, block.j + j, n}, k, smaller(blocking.KC, p_.k - k), buffers_.b, false);
    }
  }
  // The same with all of B packed, one slice of k behind the other; `packed` by an earlier call for the same columns.
  void run_keeping(const Block& block, bool packed) {
    const int64_t padded = ceil_div(block.n, NR) * NR;
    for (int64_t k = 0; k < p_.k; k += blocking.KC)
      run_slice(block, k, smaller(blocking.KC, p_.k - k), buffers_.b + k * padded, packed);
  }

 protected:
  // All rows of the block, `depth` terms of the sum: B is packed once, while the first rows are multiplied.
  void run_slice(const Block& block, int64_t k, int64_t depth, float* b, bool packed) {
    const Split blocks{ceil_div(block.m, S::MR), ceil_div(block.m, blocking.MC)};  // in strips of MR rows
    const Split strips{block.m, blocks.total};
    for (int64_t s = 0; s < blocks.parts; ++s) {
      const int64_t first = blocks.begin(s), last = blocks.begin(s + 1);
      if (!waiting_.goes_on((strips.begin(last) - strips.begin(first)) * block.n * depth)) return;
      pack_rows(block, strips, first, last, k, depth);
      bool ready = packed;
      for (int64_t j = 0; j < block.n; j += NR)
        ready =
            run_panel(block, strips, {first, last, buffers_.a}, k, depth, j, b + j * depth, ready, !packed) || packed;
      packed = true;
    }
  }

  void pack_rows(const Block& block, const Split& strips, int64_t first, int64_t last, int64_t k, int64_t depth) {
    const float* const begin = a_ + (block.i + strips.begin(first)) * p_.a.rs + k * p_.a.cs;
    with_elements(p_.stored[0], begin, [&](const auto* from) {
      float* to = buffers_.a;
      if (p_.a.rs == 1)
        return pack_strips_transposed<S>(to, from, p_.a.cs, depth, last - first,
                                         [&](int64_t r) { return strips.size(first + r); });
      for (int64_t r = first, rows; r < last; ++r, to += rows * depth, from += rows * p_.a.rs) {
        rows = strips.size(r);
        pack_strip<S>(to, rows, rows, from, p_.a.rs, p_.a.cs, depth);
      }
    });
  }

  void pack_panel(const Block& block, int64_t k, int64_t from, int64_t depth, int64_t j, float* panel) {
    const float* const begin = b_ + (k + from) * p_.b.rs + (block.j + j) * p_.b.cs;
    with_elements(p_.stored[1], begin, [&](const auto* b) {
      pack_strip<S>(panel + from * NR, NR, smaller(NR, block.n - j), b, p_.b.cs, p_.b.rs, depth - from);
    });
  }

  // The strips [first, last) of a block, packed at a. Of a panel they need the columns left of the diagonal, if C is
  // symmetric: `before` columns for the first row of the block, and one more for each row.
  struct Strips {
    int64_t first, last;
    const float* a;
    int64_t before = INT64_MAX / 2;
  };
  // Strips times the panel of B at column j of the block. May pack the next panel, and says whether it has.
  bool run_panel(const Block& block, const Split& strips, const Strips& taken, int64_t k, int64_t depth, int64_t j,
                 float* panel, bool ready, bool pack_next) {
    if (!ready) pack_panel(block, k, 0, depth, j, panel);
    const int64_t width = smaller(NR, block.n - j);
    const bool copy_next = pack_next && p_.b.cs == 1 && block.n - j >= 2 * NR && !p_.stored[1].converted();
    int64_t copied = 0;
    const int64_t per_tile = depth / 4;
    Tile t{.k = depth,
           .a = taken.a,
           .b = panel,
           .b_rs = NR,
           .c_rs = p_.c.rs,
           .width = width,
           .alpha = p_.alpha,
           .beta = p_.beta,
           .first = k == 0,
           .copy_rs = p_.b.rs};
    for (int64_t r = taken.first; r < taken.last; ++r) {
      const int64_t rows = strips.size(r);
      const bool narrow = smaller(width, taken.before + strips.begin(r + 1)) <= S::W;
      t.width = width;
      t.c = c_ + (block.i + strips.begin(r)) * p_.c.rs + (block.j + j) * p_.c.cs;
      if (copy_next && per_tile > 0 && copied + per_tile <= depth) {
        t.copy_from = b_ + (k + copied) * p_.b.rs + block.j + j + NR;
        t.copy_to = panel + (depth + copied) * NR;
        put_tile<tile_floats>(tile_function<S, S::NV, false, true>(rows), t, rows, p_.c.cs, NR);
        copied += per_tile;
      } else if (narrow) {
        t.width = smaller(width, S::W);
        put_tile<tile_floats>(tile_function<S, 1, true>(rows), t, rows, p_.c.cs, NR);
      } else {
        put_tile<tile_floats>(tile_function<S, S::NV>(rows), t, rows, p_.c.cs, NR);
      }
      t.a += rows * depth;
    }
    if (copy_next) pack_panel(block, k, copied, depth, j + NR, panel + depth * NR);
    return copy_next;
  }

  const SgemmArgs& p_;
  const float *a_, *b_;
  float* c_;
  Buffers buffers_;
  const Waiting waiting_;
};

}  // namespace
}  // namespace fl
