// SGEMM without packed A: its elements are read in place, whatever its strides. B is read in place if its rows are
// contiguous, else one panel at a time is packed. For products that fit the caches, where packing costs more than it
// saves, and for thin ones, where what is packed would be used once.
#pragma once

#include "direct_tile.h"
#include "packed_sgemm.h"

namespace fl {
namespace {

// One tile, through one on the stack if the columns of C are not neighbours.
template <class S>
void put_direct(TileFunction f, Tile& t, int64_t rows, int64_t c_cs) {
  if (c_cs == 1) return f(t);
  float staged[narrow_rows * S::NV * S::W];
  float* const c = t.c;
  const int64_t c_rs = t.c_rs, pitch = t.width <= S::W ? S::W : S::NV * S::W;
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

// `total` rows in strips of at most `most`, whose sizes differ by one at most. Calls strip(first row, rows).
template <class F>
inline __attribute__((always_inline)) void for_each_strip(int64_t total, int64_t most, F strip) {
  if (total <= most) return strip(0, total);
  const int64_t parts = ceil_div(total, most), size = total / parts, longer = total - size * parts;
  for (int64_t i = 0, s = 0, rows; i < total; i += rows, ++s) {
    rows = size + (s < longer);
    strip(i, rows);
  }
}

template <class S>
class SmallProduct {
  static constexpr int64_t NR = S::NV * S::W;

 public:
  SmallProduct(const SgemmArgs& p, int64_t batch, const Block& block)
      : p_(p),
        block_(block),
        a_(p.a.data + batch * p.a.bs + block.i * p.a.rs),
        b_(p.b.data + batch * p.b.bs + block.j * p.b.cs),
        c_(p.c.data + batch * p.c.bs + block.i * p.c.rs + block.j * p.c.cs),
        t_{.k = p.k, .a_rs = p.a.rs, .a_cs = p.a.cs, .b_rs = p.b.rs, .c_rs = p.c.rs, .alpha = p.alpha, .beta = p.beta} {
  }

  void run(float* panel) {
    const int64_t m = block_.m, n = block_.n, most = most_rows();
    if (p_.b.cs != 1) return run_packed(panel, most);
    // The rows of A at hand stay in L1 while all of B, in L2, passes by; a larger B is read once, panel by panel.
    if (4 * n * p_.k <= 512 * 1024) {
      for_each_strip(m, most, [&](int64_t i, int64_t rows) {
        for (int64_t j = 0; j < n; j += NR) tile(i, rows, j, b_ + j, 0);
      });
    } else {
      for (int64_t j = 0; j < n; j += NR)
        for_each_strip(m, most, [&](int64_t i, int64_t rows) { tile(i, rows, j, b_ + j, 0); });
    }
  }

 private:
  int64_t most_rows() const { return block_.n <= S::W ? narrow_rows : S::direct_rows; }
  void tile(int64_t i, int64_t rows, int64_t j, const float* b, int64_t k) {
    t_.a = a_ + i * p_.a.rs + k * p_.a.cs;
    t_.b = b;
    t_.c = c_ + i * p_.c.rs + j * p_.c.cs;
    t_.width = smaller(NR, block_.n - j);
    put_direct<S>(direct_function_for<S>(t_.width, rows), t_, rows, p_.c.cs);
  }
  void run_packed(float* panel, int64_t most) {
    for (int64_t j = 0; j < block_.n; j += NR) {
      const int64_t width = smaller(NR, block_.n - j);
      t_.b_rs = width <= S::W ? S::W : NR;
      for (int64_t k = 0; k < p_.k; k += small_depth) {
        t_.k = smaller(small_depth, p_.k - k);
        t_.first = k == 0;
        pack_strip<S>(panel, t_.b_rs, width, b_ + k * p_.b.rs + j * p_.b.cs, p_.b.cs, p_.b.rs, t_.k);
        for_each_strip(block_.m, most, [&](int64_t i, int64_t rows) { tile(i, rows, j, panel, k); });
      }
    }
  }

  const SgemmArgs& p_;
  const Block block_;
  const float *a_, *b_;
  float* c_;
  Tile t_;
};

template <class S>
void small_tasks(const SgemmArgs& p, const Context& context) {
  float* const panels = static_cast<float*>(context.workspace);  // null where no product needs one
  auto product = [&](int64_t batch, const Block& block, int slot) {
    SmallProduct<S>(p, batch, block).run(panels ? panels + slot * small_panel_floats : nullptr);
  };
  if (context.threads == 1) {
    constexpr int64_t at_once = 64;  // between looks at the clock, which take as long as the smallest product
    const Waiting waiting{context.watch, 0};
    for (int64_t batch = 0; batch < p.batch; ++batch) {
      if (batch % at_once == 0 && !waiting.goes_on(at_once * p.m * p.n * p.k)) return;
      product(batch, {0, p.m, 0, p.n}, 0);
    }
    return;
  }
  const int64_t group = p.batch < context.threads ? 1 : batch_group(p, context.threads);
  const Tasks tasks(p, S::blocking, context.threads);
  auto task = [&](int64_t index, int slot) {
    const int64_t first = index / tasks.each * group, last = smaller(p.batch, first + group);
    for (int64_t batch = first; batch < last; ++batch) product(batch, tasks.block(index % tasks.each), slot);
  };
  parallel_for(ceil_div(p.batch, group) * tasks.each, context.threads, task);
}

template <class S>
void small_sgemm(const SgemmArgs& p, const Context& context) {
  if (p.k == 0) return scale(p);
  if (few_columns(p))
    return small_tasks<S>(transposed(p), context);  // few columns fill few lanes: as rows they cost nothing
  small_tasks<S>(p, context);
}

}  // namespace
}  // namespace fl
