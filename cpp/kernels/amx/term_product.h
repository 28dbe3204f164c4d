// The product of three bf16 terms: how one thread walks a block of C, and which tiles of C are left to float32.
//
// Lines of one operand, rows or columns, come in blocks whose terms, for a slice of k, lie in L2 while panels of the
// other one pass by. A panel is packed for each block: written where it stays in L2, it costs less than terms of all of
// its operand, which go to L3 and come back. For many blocks these are kept, some slices and lines at a time. What is
// needed next is packed between the products.
// Where a slice of k ends depends on k alone, and strips and panels begin at multiples of 32: so do the sums and what
// is left to float32, whatever the threads.
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
  static constexpr int64_t strip = term_step, line = 16;  // rows or columns; floats

 public:
  static constexpr CpuBlocking blocking = term_blocking;
  using RowStrips = TermStrips;
  static constexpr int64_t least_strips = 4;  // B is packed for each part of a group

  TermProduct(const SgemmArgs& p, int64_t batch, Buffers buffers, Waiting waiting)
      : p_(p),
        batch_(batch),
        c_(p.c.data + batch * p.c.bs),
        buffers_(buffers),
        waiting_(waiting),
        slices_{ceil_div(p.k, term_step), ceil_div(p.k, blocking.KC)},
        limits_(p.k),
        kept_a_(buffers.prepacked ? kept(buffers.prepacked->a) : nullptr),
        kept_b_(buffers.prepacked ? kept(buffers.prepacked->b) : nullptr),
        rows_stay_(kept_b_ || (!kept_a_ && term_rows_stay(p))) {}
  ~TermProduct() { tiles_.release(); }

  void run(const Block& of_c) {
    const Block block = turned(of_c);
    const bool keeps = !kept_passing() && block.m > term_lines_once;
    const int64_t slices = keeps ? term_slices : slices_.parts, lines = keeps ? blocking.NC : block.n;
    for (int64_t s = 0; s < slices_.parts; s += slices)
      for (int64_t j = 0; j < block.n; j += lines)
        run_slices({block.i, block.m, block.j + j, smaller(lines, block.n - j)}, s, smaller(slices_.parts, s + slices),
                   keeps);
  }
  void run_keeping(const Block& block, bool) { run(block); }

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

  // From rows and columns to lines that stay and lines that pass by, and back.
  Block turned(const Block& block) const { return rows_stay_ ? block : Block{block.j, block.n, block.i, block.m}; }
  // Terms that are kept, or null.
  float* kept_staying() const { return rows_stay_ ? kept_a_ : kept_b_; }
  float* kept_passing() const { return rows_stay_ ? kept_b_ : kept_a_; }

  // A slice of k of a block of lines that stay. `place`: of its first panel among those that are packed.
  struct Part {
    Block block;
    int64_t slice, place = 0;
    bool packed = false;
    int64_t strips() const { return ceil_div(block.m, strip); }
    int64_t panels() const { return ceil_div(block.n, strip); }
  };
  void run_slices(const Block& all, int64_t first, int64_t last, bool keeps) {
    keeps_ = keeps, ahead_ = {0, 0};
    for (Part part{{all.i, smaller(blocking.MC, all.m), all.j, all.n}, first}; part.block.m > 0;) {
      if (!waiting_.goes_on(part.block.m * part.block.n * depth(part.slice))) return;
      Part next = part;
      next.place += part.panels();
      if (++next.slice == last) {
        next.block.i += next.block.m, next.block.m = smaller(blocking.MC, all.i + all.m - next.block.i);
        next.slice = first;
        if (keeps) next.place = 0, next.packed = true;
      }
      run_part(part, next);
      part = next;
    }
  }
  void run_part(const Part& part, const Part& next) {
    const Block all = turned({0, p_.m, 0, p_.n});
    const int64_t steps = slices_.size(part.slice), kept_pitch = term_strip_floats(steps);
    const float* const kept_strips = kept_strip(kept_staying(), all.m, part.slice, part.block.i / strip);
    const float* const kept_panels = kept_strip(kept_passing(), all.n, part.slice, part.block.j / strip);
    const int64_t share = packs_panels(part) ? 0 : ceil_div(6 * 256, part.strips() * line) * line;
    begun_ = ahead_, ahead_ = {0, 0};
    if (!kept_staying() && begun_.strips == 0) begin_strip(part, begun_.strips++);
    if (packs_panels(part) && begun_.panels == 0) begin_panel(part, begun_.panels++);
    for (int64_t j = 0; j < part.panels(); ++j) {
      const float* const panel = kept_panels ? kept_panels + j * kept_pitch : panel_at(part, j);
      const float* const next_panel = panel + (kept_panels ? kept_pitch : pitch_);
      for (int64_t i = 0; i < part.strips(); ++i) {
        if (urgent_ || i == 0) packer_.finish();
        pack_beside(part, next, i, j);
        const int64_t m = smaller(strip, part.block.m - i * strip), n = smaller(strip, part.block.n - j * strip);
        const float* const stays = kept_strips ? kept_strips + i * kept_pitch : strip_at(i);
        run_tile(turned({part.block.i + i * strip, m, part.block.j + j * strip, n}), part.slice,
                 rows_stay_ ? stays : panel, rows_stay_ ? panel : stays, next_panel + i * steps * share, share);
      }
    }
    packer_.finish();
  }
  // Begins to pack what is needed next while a tile is multiplied: beside the first panel the next strip, then the next
  // panel, and beside the last panel what the next part begins with, in the place of strips that are done.
  void pack_beside(const Part& part, const Part& next, int64_t i, int64_t j) {
    const bool last = j > 0 && j + 1 == part.panels();
    urgent_ = part.strips() == 1;
    if (!kept_staying() && j == 0 && i + 1 >= begun_.strips && i + 1 < part.strips()) {
      begin_strip(part, i + 1), urgent_ = true;
    } else if (packs_panels(part) && j + 1 == begun_.panels && j + 1 < part.panels()) {
      begin_panel(part, begun_.panels++);
    } else if (packs_panels(next) && last && i == 0 && next.strips() > 0) {
      begin_panel(next, ahead_.panels++), urgent_ = true;
    } else if (!kept_staying() && last && i > 0 && i <= next.strips()) {
      begin_strip(next, ahead_.strips++), urgent_ = true;
    }
  }
  float* strip_at(int64_t index) const { return buffers_.a + small_panel_floats + index * pitch_; }
  // By turns in two places where none is kept.
  float* panel_at(const Part& part, int64_t index) const {
    const int64_t place = part.place + index;
    return buffers_.b + (keeps_ ? place : place % 2) * pitch_;
  }
  bool packs_panels(const Part& part) const { return !kept_passing() && !part.packed; }
  void begin_strip(const Part& part, int64_t index) {
    packer_.finish();
    begin_lines(rows_stay_, strip_at(index), part.slice, part.block.i + index * strip);
  }
  void begin_panel(const Part& part, int64_t index) {
    packer_.finish();
    begin_lines(!rows_stay_, panel_at(part, index), part.slice, part.block.j + index * strip);
  }
  void begin_lines(bool rows, float* to, int64_t slice, int64_t i) {
    rows ? begin_rows(to, slice, i) : begin_columns(to, slice, i);
  }
  void begin_rows(float* to, int64_t slice, int64_t i) {
    const float* const a = p_.a.data + batch_ * p_.a.bs + i * p_.a.rs + k_of(slice) * p_.a.cs;
    packer_.begin_rows(to, a, p_.a.rs, p_.a.cs, smaller(strip, p_.m - i), depth(slice));
  }
  void begin_columns(float* to, int64_t slice, int64_t j) {
    const float* const b = p_.b.data + batch_ * p_.b.bs + k_of(slice) * p_.b.rs + j * p_.b.cs;
    packer_.begin_columns(to, b, p_.b.rs, p_.b.cs, smaller(strip, p_.n - j), depth(slice));
  }
  void pack_rows(float* to, int64_t slice, int64_t i) { begin_rows(to, slice, i), packer_.finish(); }
  void pack_columns(float* to, int64_t slice, int64_t j) { begin_columns(to, slice, j), packer_.finish(); }
  float* kept(const PrepackedOperand& operand) const {
    return operand.memory ? reinterpret_cast<float*>(operand.memory + std::size_t(batch_) * operand.apart) : nullptr;
  }
  float* kept_strip(float* kept, int64_t lines, int64_t slice, int64_t index) const {
    if (!kept) return nullptr;
    const int64_t strips = ceil_div(lines, strip), steps = slices_.begin(slice);
    return kept + strips * (slice * term_header + term_strip_floats(steps) - term_header) +
           index * term_strip_floats(slices_.size(slice));
  }

  void run_tile(const Block& tile, int64_t slice, const float* a, const float* b, const float* ahead, int64_t share) {
    const int64_t steps = slices_.size(slice);
    if (!limits_.fit(a, b)) return run_in_float32(tile, slice);
    float* const c = c_ + tile.i * p_.c.rs + tile.j * p_.c.cs;
    const bool first = slice == 0, straight = first && p_.alpha == 1.0f && p_.beta == 0.0f && p_.c.cs == 1;
    // A few lines with each step: more at once would keep tiles waiting.
    const float* row = c;
    const float* const end = p_.c.cs == 1 ? c + tile.m * p_.c.rs : c;
    const int64_t rows = ceil_div(tile.m, steps);
    const auto fetch = [&]() __attribute__((always_inline)) {
      for (int64_t i = 0; i < rows && row != end; ++i, row += p_.c.rs) prefetch_row<strip>(row);
      for (int64_t x = 0; x < share; x += line) __builtin_prefetch(ahead + x, 0, 2);
      ahead += share;
    };
    shape(tile.m, tile.n);
    const auto run = [&]<bool low, bool right>() {
      TermTile<Tiles, S, low, right>::run(tiles_, a + term_header, b + term_header, steps, packer_, urgent_, fetch);
    };
    constexpr int64_t half = strip / 2;
    if (tile.m > half && tile.n > half) run.template operator()<true, true>();
    else if (tile.m > half) run.template operator()<true, false>();
    else if (tile.n > half) run.template operator()<false, true>();
    else run.template operator()<false, false>();
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
  float *const kept_a_, *const kept_b_;
  const bool rows_stay_;
  Tiles tiles_;
  TermPacker<S> packer_;
  const int64_t pitch_ = term_strip_floats(ceil_div(slices_.total, slices_.parts));  // of strips that are packed here
  struct Begun {
    int64_t strips = 0, panels = 0;
  };
  Begun begun_, ahead_;             // what is packed, or is being packed, of this part and of the next one
  bool urgent_ = false;             // the next tile needs what is being packed
  bool keeps_ = false;              // all panels that are packed
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
