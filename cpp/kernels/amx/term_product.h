// The product of three bf16 terms: how one thread walks a block of C, and which tiles of C are left to float32.
//
// B is packed for all slices of k that are walked at a time, while the first rows are multiplied. Rows come in blocks
// whose terms lie in L2, slice by slice: a panel of B stays in L1 while the strips of A pass by, and the block of C in
// L2 from slice to slice. Where a slice of k ends depends on k alone, and strips and panels begin at
// multiples of 32: so do the sums and what is left to float32, whatever the threads.
#pragma once

#include "../small_sgemm.h"
#include "pack_terms.h"
#include "plan/prepacked_operand.h"
#include "term_tile.h"
#include "tile_shapes.h"

namespace fl {
namespace {

// What a strip and a panel need for the bound of docs/accuracy.md, by the exponents of their numbers (float32's own
// bits): no sum of k products overflows, the terms of a number are normal numbers, and so is all that products and sums
// of them can be, so nothing is flushed.
class TermLimits {
 public:
  explicit TermLimits(int64_t k) {
    while (k > int64_t(1) << log2_k_) ++log2_k_;
  }
  bool fit(const float* strip, const float* panel) const {
    const TermRange a = range(strip), b = range(panel);
    return (a.most >> 23) <= 253 && (b.most >> 23) <= 253 && (a.most >> 23) + (b.most >> 23) <= 378u - log2_k_ &&
           (a.least >> 23) >= 24 && (b.least >> 23) >= 24 && (a.least >> 23) + (b.least >> 23) >= 174;
  }

 private:
  static TermRange range(const float* strip) {
    TermRange r;
    memcpy(&r, strip, sizeof r);
    return r;
  }
  uint32_t log2_k_ = 0;
};

// Strips of 32 rows.
struct TermStrips {
  int64_t rows, parts;
  int64_t begin(int64_t i) const { return smaller(i * term_step, rows); }
  int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
};

template <class Tiles, class S>
class TermProduct {
  static constexpr int64_t strip = term_step;

 public:
  static constexpr CpuBlocking blocking = term_blocking;
  using RowStrips = TermStrips;
  static constexpr int64_t least_strips = 4;  // a panel of B comes from L3 for each part of a group

  TermProduct(const SgemmArgs& p, int64_t batch, Buffers buffers, Waiting waiting)
      : p_(p),
        batch_(batch),
        c_(p.c.data + batch * p.c.bs),
        buffers_(buffers),
        waiting_(waiting),
        slices_{ceil_div(p.k, term_step), ceil_div(p.k, blocking.KC)},
        limits_(p.k) {
    if (!buffers.prepacked) return;
    kept_a_ = kept(buffers.prepacked->a), kept_b_ = kept(buffers.prepacked->b);
  }
  ~TermProduct() { tiles_.release(); }

  void run(const Block& block) {
    for (int64_t s = 0; s < slices_.parts; s += term_slices)
      for (int64_t j = 0; j < block.n; j += blocking.NC)
        run_slices({block.i, block.m, block.j + j, smaller(blocking.NC, block.n - j)}, s,
                   smaller(slices_.parts, s + term_slices), false);
  }
  void run_keeping(const Block& block, bool packed) { run_slices(block, 0, slices_.parts, packed); }

  // The strip of one operand that is kept from call to call.
  void keep_rows(int64_t index) {
    for (int64_t s = 0; s < slices_.parts; ++s) pack_rows(kept_strip(kept_a_, p_.m, s, index), s, index * strip);
  }
  void keep_columns(int64_t index) {
    for (int64_t s = 0; s < slices_.parts; ++s) pack_columns(kept_strip(kept_b_, p_.n, s, index), s, index * strip);
  }

 private:
  int64_t k_of(int64_t slice) const { return slices_.begin(slice) * term_step; }
  int64_t depth(int64_t slice) const { return smaller(p_.k, k_of(slice + 1)) - k_of(slice); }

  // Slices [first, last) of all rows of a block.
  void run_slices(const Block& block, int64_t first, int64_t last, bool packed) {
    for (int64_t i = 0; i < block.m; i += blocking.MC, packed = true) {
      const Block rows{block.i + i, smaller(blocking.MC, block.m - i), block.j, block.n};
      if (!waiting_.goes_on(rows.m * rows.n * (k_of(last) - k_of(first)))) return;
      float* panels = buffers_.b;
      for (int64_t s = first; s < last; ++s) panels = run_slice(rows, s, panels, packed);
    }
  }
  // Returns where the panels of the next slice are.
  float* run_slice(const Block& block, int64_t slice, float* panel, bool packed) {
    const int64_t each = term_strip_floats(slices_.size(slice));
    float* const strips = kept_a_ ? kept_strip(kept_a_, p_.m, slice, block.i / strip) : buffers_.a + small_panel_floats;
    if (kept_b_) panel = kept_strip(kept_b_, p_.n, slice, block.j / strip);
    if (!kept_a_)
      for (int64_t i = 0; i < block.m; i += strip) pack_rows(strips + i / strip * each, slice, block.i + i);
    for (int64_t j = 0; j < block.n; j += strip, panel += each) {
      if (!packed && !kept_b_) pack_columns(panel, slice, block.j + j);
      for (int64_t i = 0; i < block.m; i += strip)
        run_tile({block.i + i, smaller(strip, block.m - i), block.j + j, smaller(strip, block.n - j)}, slice,
                 strips + i / strip * each, panel);
    }
    return panel;
  }
  void pack_rows(float* to, int64_t slice, int64_t i) {
    const float* const a = p_.a.data + batch_ * p_.a.bs + i * p_.a.rs + k_of(slice) * p_.a.cs;
    TermPacker<S>().rows(to, a, p_.a.rs, p_.a.cs, smaller(strip, p_.m - i), depth(slice));
  }
  void pack_columns(float* to, int64_t slice, int64_t j) {
    const float* const b = p_.b.data + batch_ * p_.b.bs + k_of(slice) * p_.b.rs + j * p_.b.cs;
    TermPacker<S>().columns(to, b, p_.b.rs, p_.b.cs, smaller(strip, p_.n - j), depth(slice));
  }
  float* kept(const PrepackedOperand& operand) const {
    return operand.memory ? reinterpret_cast<float*>(operand.memory + std::size_t(batch_) * operand.apart) : nullptr;
  }
  float* kept_strip(float* kept, int64_t lines, int64_t slice, int64_t index) const {
    const int64_t strips = ceil_div(lines, strip), steps = slices_.begin(slice);
    return kept + strips * (slice * term_header + term_strip_floats(steps) - term_header) +
           index * term_strip_floats(slices_.size(slice));
  }

  void run_tile(const Block& tile, int64_t slice, const float* a, const float* b) {
    if (!limits_.fit(a, b)) return run_in_float32(tile, slice);
    float* const c = c_ + tile.i * p_.c.rs + tile.j * p_.c.cs;
    const bool first = slice == 0, straight = first && p_.alpha == 1.0f && p_.beta == 0.0f && p_.c.cs == 1;
    if (p_.c.cs == 1)
      for (int64_t i = 0; i < tile.m; ++i) prefetch_row<strip>(c + i * p_.c.rs);
    shape(tile.m, tile.n);
    const auto run =
        tile.m > strip / 2
            ? (tile.n > strip / 2 ? TermTile<Tiles, true, true>::run : TermTile<Tiles, true, false>::run)
            : (tile.n > strip / 2 ? TermTile<Tiles, false, true>::run : TermTile<Tiles, false, false>::run);
    run(tiles_, a + term_header, b + term_header, slices_.size(slice));
    if (straight) return store(tile, c, p_.c.rs);
    alignas(64) float sums[strip * strip];
    store(tile, sums, strip);
    add(tile, sums, c, first);
  }
  // Registers as large as the tile of C: nothing beyond it is loaded or stored.
  void shape(int64_t rows, int64_t columns) {
    if (rows == rows_ && columns == columns_) return;
    rows_ = rows, columns_ = columns;
    TileShapes shapes;
    const auto set = [&](int tile, int64_t most_rows, int64_t most_columns) {
      shapes.rows[tile] = uint8_t(larger(1, smaller(strip / 2, most_rows)));
      shapes.row_bytes[tile] = uint16_t(4 * larger(1, smaller(strip / 2, most_columns)));
    };
    for (int t = 0; t < 4; ++t) set(t, rows - t / 2 * (strip / 2), columns - t % 2 * (strip / 2));
    for (int h = 0; h < 2; ++h) {
      set(4 + h, rows - h * (strip / 2), strip / 2);
      set(6 + h, strip / 2, columns - h * (strip / 2));
    }
    tiles_.configure(shapes);
  }
  void store(const Block& tile, float* to, int64_t rs) {
    constexpr int64_t half = strip / 2;
    const int64_t bytes = rs * int64_t(sizeof(float));
    tiles_.template store<0>(to, bytes);
    if (tile.n > half) tiles_.template store<1>(to + half, bytes);
    if (tile.m > half) tiles_.template store<2>(to + half * rs, bytes);
    if (tile.m > half && tile.n > half) tiles_.template store<3>(to + half * rs + half, bytes);
  }
  // C = alpha sums + beta C, or C += alpha sums, row by row.
  void add(const Block& tile, const float* sums, float* c, bool first) {
    const Tile t{.alpha = p_.alpha, .beta = p_.beta};
    for (int64_t i = 0; i < tile.m; ++i, sums += strip, c += p_.c.rs) {
      float staged[strip];
      float* const row = p_.c.cs == 1 ? c : staged;
      if (row == staged && (!first || p_.beta != 0.0f))
        for (int64_t j = 0; j < tile.n; ++j) staged[j] = c[j * p_.c.cs];
      for (int64_t j = 0; j < tile.n; j += S::W) update_part<S>(row + j, sums + j, t, first, tile.n - j);
      if (row == staged)
        for (int64_t j = 0; j < tile.n; ++j) c[j * p_.c.cs] = staged[j];
    }
  }
  void run_in_float32(const Block& tile, int64_t slice) {
    const int64_t k = k_of(slice);
    SgemmArgs part = p_;
    part.k = depth(slice);
    part.a.data += k * p_.a.cs;
    part.b.data += k * p_.b.rs;
    if (slice > 0) part.beta = 1.0f;
    SmallProduct<S, false>(part, batch_, tile).run(buffers_.a);
  }

  const SgemmArgs& p_;
  const int64_t batch_;
  float* const c_;
  const Buffers buffers_;
  const Waiting waiting_;
  const Split slices_;  // of k, in steps
  const TermLimits limits_;
  float *kept_a_ = nullptr, *kept_b_ = nullptr;
  Tiles tiles_;
  int64_t rows_ = 0, columns_ = 0;  // that the registers are shaped for
};

// Of operands that are kept and not there yet.
template <class Tiles, class S>
void keep_terms(const SgemmArgs& p, const Context& context) {
  const auto keep = [&](const PrepackedOperand& operand, int64_t lines, auto strip_of) {
    if (!operand.memory || operand.ready()) return;
    const int64_t strips = ceil_div(lines, term_step), batch = operand.apart ? p.batch : 1;
    auto task = [&](int64_t index, int) {
      TermProduct<Tiles, S> product(p, index / strips, {nullptr, nullptr, context.prepacked}, {});
      (product.*strip_of)(index % strips);
    };
    parallel_for(strips * batch, context.threads, task);
  };
  keep(context.prepacked->a, p.m, &TermProduct<Tiles, S>::keep_rows);
  keep(context.prepacked->b, p.n, &TermProduct<Tiles, S>::keep_columns);
}

template <class Tiles, class S>
void term_sgemm(const SgemmArgs& p, const Context& context) {
  const bool finite = p.alpha - p.alpha == 0.0f;  // else each chain of float32 sums counts: Inf less Inf
  // Sums of terms are not symmetric: hi * mid is added before mid * hi.
  if (p.k < least_term_depth || !finite || p.symmetric) return small_sgemm<S, false>(p, context);
  if (context.prepacked) keep_terms<Tiles, S>(p, context);
  const Cut cut = cut_for_threads(p, term_blocking, context.threads);
  SharedProducts<TermProduct<Tiles, S>>(p, cut, term_layout(p, cut), context).run();
}

}  // namespace
}  // namespace fl
