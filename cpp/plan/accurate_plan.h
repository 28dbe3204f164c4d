// How an accurate product on tensor cores is laid out, cut up and checked: what its legality, its costs and its kernels
// have to agree on.
//
// Constants here decide the order of sums, and so the bits of results. They are frozen: today's values are those of the
// costs they were fitted with, but a cost that is fitted again must not change them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device_spec.h"
#include "core/layout.h"
#include "core/problem.h"
#include "plan/reference_device.h"
#include "plan/terms.h"

namespace fl {

// ---------------------------------------------------------------- terms in memory
// A term holds 64 x 64 blocks of 2-byte numbers: 64 lines (rows of A, columns of B) by 64 k. The terms of a block lie
// side by side, and the blocks of the same 64 lines, a panel, one after the other along k.
constexpr int TERM_BLOCK = 64, TERM_ROW_BYTES = 64 * 2, TERM_BYTES = 64 * TERM_ROW_BYTES;
// Lines that a block of threads of the split pass takes; it reports on their range in one word.
constexpr int SPLIT_LINES = 16;
// The bound of docs/accuracy.md holds from k = 64 on, but short sums of positive numbers are more accurate in plain
// float32: below this k the fallback runs. Above the other the counters of the split pass are too narrow.
constexpr int64_t TERMS_SMALLEST_K = 256, TERMS_LARGEST_K = int64_t{1} << 20;
constexpr bool terms_fit(int64_t k) { return k >= TERMS_SMALLEST_K && k <= TERMS_LARGEST_K; }

// What the split pass leaves of one operand: the word of the range check for each 16 lines, the exponent of each line,
// the terms of each panel of lines. Offsets and size.
struct SplitLayout {
  int64_t panel_lines;     // 64, or 96 columns of B for tiles that have as many
  int64_t panels, groups;  // the latter of 16 lines
  std::size_t exponents, terms, panel_bytes, bytes;

  constexpr SplitLayout(int64_t lines, int64_t k, Terms kind, int64_t lines_of_a_panel = TERM_BLOCK)
      : panel_lines(lines_of_a_panel),
        panels(ceil_div(lines, panel_lines)),
        groups(ceil_div(lines, SPLIT_LINES)),
        exponents(aligned(std::size_t(groups) * sizeof(unsigned))),
        // A tile of the product may reach three panels past the last one. What it reads there goes nowhere.
        terms(aligned(exponents + std::size_t((panels + 3) * panel_lines) * sizeof(int))),
        panel_bytes(std::size_t(ceil_div(k, TERM_BLOCK) * term_count(kind) * panel_lines) * TERM_ROW_BYTES),
        bytes(terms + std::size_t(panels + 3) * panel_bytes) {}

 private:
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
};

// Few lines that are long: blocks of their own split segments of their k (operand_split.cuh). Two blocks at a time fit
// on a multiprocessor, and there are enough for two waves. From some hundred blocks of 16 lines on memory is busy
// without. Terms, exponents and range words are the same with and without segments.
constexpr int64_t SPLIT_PIECE = 512, SEGMENT_BLOCKS = 4 * PLAN_MULTIPROCESSORS, MOST_SEGMENTS = 8,
                  MOST_SEGMENTED_GROUPS = 100;
constexpr int split_segments(int64_t groups, int64_t k) {
  const int64_t pieces = ceil_div(k, SPLIT_PIECE);
  if (groups < 1 || groups > MOST_SEGMENTED_GROUPS || pieces < 8) return 1;
  // A second wave is long only where segments are.
  const int64_t blocks = pieces < 32 ? SEGMENT_BLOCKS / 2 : SEGMENT_BLOCKS;
  return int(std::min({blocks / groups, pieces / 3, MOST_SEGMENTS}));
}
// What the block of a segment has found of its 16 lines.
struct SegmentRecord {
  unsigned largest[SPLIT_LINES], large_count[SPLIT_LINES], flags, arrived;
};
constexpr std::size_t SEGMENT_RECORD_BYTES =
    (SEGMENT_BLOCKS + MOST_SEGMENTED_GROUPS) * sizeof(SegmentRecord) / 256 * 256 + 256;

// ---------------------------------------------------------------- the range check
// The status that a product leaves for the kernels behind it, and for the log, in the first words of the workspace.
constexpr unsigned STATUS_REJECTED = 1;  // the terms cannot hold these operands: a fallback computes the product
constexpr unsigned STATUS_WIDE = 2;      // scales so far from 1 that they are applied in two steps
constexpr unsigned STATUS_NOT_FINITE = 4;
constexpr unsigned STATUS_DONE = 8;         // other terms, tried before these, have computed the product
constexpr unsigned STATUS_COMPENSATE = 16;  // the tensor cores truncate sums of this product: compensate for that

// What a product of two fp16 terms costs of the bound besides k / 64, in units of u: with Hopper's instructions, and
// with those of every GPU since compute capability 8.0, where older tensor cores cut more of what they add.
// MMA_K8_ERROR is that of 7.5, whose tensor cores cut yet more, at 32 k to a promotion instead of 64.
constexpr int WGMMA_ERROR = 55, MMA_ERROR = 97, MMA_K8_ERROR = 105;

// The range check in numbers; docs/accuracy.md derives them. Units of u = 2^-24, the rounding error of float32: of the
// k units that the bound allows, `spare` are left when everything else has taken its worst share. Half of them go to
// numbers that are not small, half to those that are.
struct RangeBound {
  float small, large;  // a scaled number is small below the one, if it is not zero, and large from the other on
  // If there are small numbers: for how many k both factors have to be large, for every element of C.
  unsigned both_large;

  RangeBound(Terms terms, int64_t k, int product_error = WGMMA_ERROR, int promoted_k = 64) {
    if (terms == Terms::bf16x6) {
      small = 0x1p-50f, large = 0x1p-22f, both_large = 1;
      return;
    }
    const double spare = double(k) * (promoted_k - 1) / promoted_k - product_error;
    small = float(2 / spare);
    // The scale of a long line leaves a factor 16 of headroom, so its numbers are that much smaller.
    large = k <= ONE_PIECE ? 128.0f : 16.0f;
    const double small_error_per_large = spare / 2 * double(large) * double(large) / (1 << 14);
    both_large = unsigned(double(k) / (1 + small_error_per_large)) + 1;
  }

  static constexpr int64_t ONE_PIECE = 1024;  // of k: up to here the split pass holds all of a line
};

// Whether bf16x6 is tried where fp16x2 is rejected. Its two launches take about 5 us of every call, and it is three
// times as fast as the float32 fallback behind it.
constexpr bool has_bf16x6_fallback(const SgemmArgs& p) { return double(p.m) * double(p.n) * double(p.k) >= 0x1p34; }

// ---------------------------------------------------------------- tiles
// Those called single are one for each block, or for each cluster of two that shares its k (single_tile_product.cuh).
enum class AccurateTile {
  tall_256x128,
  middle_192x128,
  middle_192x96,
  even_128x128,
  small_128x64,
  single_128x64,
  single_64x96,
  single_64x64,
  single_64x64_by_2,
  split_k_128x128
};
struct AccurateTileChoice {
  AccurateTile tile;
  int64_t b_panel;     // columns of a panel of B
  double rounds_area;  // elements of C that one multiprocessor computes, weighed by the rate of the tile
  double ends;         // microseconds: the first tile's way in and the last one's way out
  int k_parts = 1;     // warpgroups that share the k of a tile, and add up their sums
};
// Operations of a multiprocessor in a microsecond in large products. Frozen, like the rates and ends of the tiles.
constexpr double PLAN_OPERATIONS_PER_US = 225e6 / double(PLAN_MULTIPROCESSORS);
// Up to here tiles may have 96 columns. Their panels of B have as many.
constexpr int64_t LARGEST_N_OF_96 = 4096;

namespace accurate_detail {
struct TileRate {
  AccurateTile tile;
  int rows, cols, blocks, k_parts;
  double rate, ends;
  bool single;
};
inline constexpr TileRate tile_rates[] = {{AccurateTile::tall_256x128, 256, 128, 1, 1, 1.0, 7.5, false},
                                          {AccurateTile::middle_192x128, 192, 128, 1, 1, 0.95, 4, false},
                                          {AccurateTile::middle_192x96, 192, 96, 1, 1, 0.92, 4, false},
                                          {AccurateTile::even_128x128, 128, 128, 1, 1, 0.95, 4, false},
                                          {AccurateTile::small_128x64, 128, 64, 1, 1, 0.9, 3.3, false},
                                          {AccurateTile::single_128x64, 128, 64, 1, 1, 0.9, 2.7, true},
                                          {AccurateTile::single_64x96, 64, 96, 1, 2, 0.82, 2.8, true},
                                          {AccurateTile::single_64x64, 64, 64, 1, 2, 0.8, 2.5, true},
                                          {AccurateTile::single_64x64_by_2, 64, 64, 2, 4, 0.75, 3, true}};

// The fastest tile by estimate, of those whose k is in `k_parts`, or of all for 0. A block has one single tile, so
// these are for products with no more tiles than multiprocessors, unless all tiles with such parts are single.
constexpr AccurateTileChoice fastest_tile(int64_t m, int64_t n, int64_t k, int64_t multiprocessors, int k_parts) {
  AccurateTileChoice best{};
  double least = 0;
  for (const auto& t : tile_rates) {
    if (k_parts != 0 && t.k_parts != k_parts) continue;
    const int64_t rounds = ceil_div(ceil_div(m, t.rows) * ceil_div(n, t.cols) * t.blocks, multiprocessors);
    const bool wide = t.cols % TERM_BLOCK != 0;
    if ((t.single && rounds > 1 && k_parts < 2) || (wide && n > LARGEST_N_OF_96)) continue;
    const double area = double(rounds) * t.rows * t.cols / (t.blocks * t.rate);
    const double time = area * 2 * double(k) / PLAN_OPERATIONS_PER_US + t.ends;
    if (least == 0 || time < least) least = time, best = {t.tile, wide ? t.cols : TERM_BLOCK, area, t.ends, t.k_parts};
  }
  return best;
}
}  // namespace accurate_detail

// Whether a kernel with this tile is the one that the plan means.
constexpr bool is_planned(AccurateTile tile, int rows, int cols, int k_parts) {
  for (const auto& t : accurate_detail::tile_rates)
    if (t.tile == tile) return t.rows == rows && t.cols == cols && t.k_parts == k_parts;
  return false;
}

// In how many parts the k of a tile is summed decides bits, so it is chosen for the reference device; which of the
// tiles with such parts, for the device that is there.
constexpr AccurateTileChoice choose_accurate_tile(int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  const AccurateTileChoice planned = accurate_detail::fastest_tile(m, n, k, PLAN_MULTIPROCESSORS, 0);
  if (multiprocessors == PLAN_MULTIPROCESSORS) return planned;
  return accurate_detail::fastest_tile(m, n, k, multiprocessors, planned.k_parts);
}

// The same for products by mma.sync (mma_sync.cuh). Most GPUs lend a block 99 KiB: there is a tile within that for each
// number of parts and length of a promotion.
struct MmaTileShape {
  int rows, cols;
  int k_parts;        // groups of warps that share the k of a tile, and add up their sums
  int promoted_k;     // of a part's k, what is promoted to float32 at a time
  int shared_kib;     // of a block, rounded up
  double rate, ends;  // as those of AccurateTileChoice
  // One tile for each block, with the float32 fallback inside: the same sums as those of another tile in the list,
  // where there is a multiprocessor for each. These have no part in how k is summed.
  bool single = false;
};
inline constexpr MmaTileShape fp16x2_mma_tiles[] = {
    {128, 128, 1, 64, 131, 1.0, 2}, {128, 64, 1, 64, 98, 0.85, 2.5},     {192, 96, 1, 32, 111, 0.87, 4},
    {128, 128, 1, 32, 99, 0.9, 2},  {96, 64, 4, 32, 161, 0.74, 1.3},     {32, 64, 2, 64, 97, 0.62, 2},
    {32, 64, 4, 32, 97, 0.5, 2},    {192, 96, 1, 32, 110, 0.93, 3, true}};
inline constexpr MmaTileShape bf16x6_mma_tiles[] = {{128, 128, 1, 32, 99, 0.46, 2}, {64, 64, 2, 32, 97, 0.44, 2}};
// By instructions of 8 k, and within the 64 KiB of 7.5.
inline constexpr MmaTileShape fp16x2_mma_k8_tiles[] = {{128, 64, 1, 32, 50, 0.8, 2.5}, {64, 64, 1, 32, 34, 0.6, 2}};
constexpr std::span<const MmaTileShape> mma_tiles(MmaProduct product) {
  if (product == MmaProduct::bf16x6) return bf16x6_mma_tiles;
  if (product == MmaProduct::fp16x2_k8) return fp16x2_mma_k8_tiles;
  return fp16x2_mma_tiles;
}

struct MmaTileChoice {
  int tile = -1;  // its place in the list
  double rounds_area = 0, ends = 0;
};
namespace accurate_detail {
constexpr double PLAN_MMA_OPERATIONS_PER_US = 150e6 / double(PLAN_MULTIPROCESSORS);
constexpr double mma_product_us(const MmaTileChoice& choice, int64_t k) {
  return choice.rounds_area * 2 * double(k) / PLAN_MMA_OPERATIONS_PER_US + choice.ends;
}
// Of those that sum up as `planned` does, if that is given.
constexpr MmaTileChoice fastest_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k, int64_t multiprocessors,
                                         std::size_t shared_per_block, const MmaTileShape* planned) {
  MmaTileChoice best{};
  double least = 0;
  const auto tiles = mma_tiles(product);
  for (int i = 0; i < int(tiles.size()); ++i) {
    const MmaTileShape& t = tiles[i];
    if (planned && (planned->k_parts != t.k_parts || planned->promoted_k != t.promoted_k)) continue;
    if (std::size_t(t.shared_kib) * 1024 > shared_per_block || (t.single && !planned)) continue;
    const int64_t rounds = ceil_div(ceil_div(m, t.rows) * ceil_div(n, t.cols), multiprocessors);
    if (t.single && rounds > 1) continue;
    const MmaTileChoice choice{i, double(rounds) * t.rows * t.cols / t.rate, t.ends};
    const double time = mma_product_us(choice, k);
    if (best.tile < 0 || time < least) least = time, best = choice;
  }
  return best;
}
constexpr MmaTileChoice fastest_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  return fastest_mma_tile(product, m, n, k, PLAN_MULTIPROCESSORS, capability(90).shared_per_block, nullptr);
}
}  // namespace accurate_detail

// As choose_accurate_tile: how k is summed, by the reference device.
constexpr const MmaTileShape& planned_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  return mma_tiles(product)[accurate_detail::fastest_mma_tile(product, m, n, k).tile];
}
constexpr MmaTileChoice choose_mma_tile(MmaProduct product, int64_t m, int64_t n, int64_t k, const DeviceSpec& device) {
  return accurate_detail::fastest_mma_tile(product, m, n, k, device.multiprocessors, device.shared_per_block,
                                           &planned_mma_tile(product, m, n, k));
}

// ---------------------------------------------------------------- split-K
// Few tiles and a long k: blocks take parts of the k of a tile and leave their sums in the workspace (split_k.cuh). The
// cut is part of the specification of the result's bits, so it depends on the call alone.
constexpr int ACCURATE_SPLIT_K_TILE = 128;
struct AccurateSplitK {
  int count = 1;             // 1: k is not cut
  int64_t rows = 0, ld = 0;  // of the sums of a part, whole tiles
  double rounds_area = 0, ends = 0;
  constexpr std::size_t bytes() const { return count == 1 ? 0 : std::size_t(count * rows * ld) * sizeof(float); }
};
namespace accurate_detail {
// `whole_us` is what whole tiles take, and tiles reach `rate` of so many operations of a multiprocessor in a us.
constexpr AccurateSplitK fastest_split_k(int64_t m, int64_t n, int64_t k, double whole_us, double operations_per_us,
                                         double rate) {
  constexpr int64_t multiprocessors = PLAN_MULTIPROCESSORS, tile = ACCURATE_SPLIT_K_TILE;
  const int64_t down = ceil_div(m, tile), across = ceil_div(n, tile), tiles = down * across;
  AccurateSplitK best{1, down * tile, across * tile};
  if (tiles > multiprocessors || k < 4096) return best;
  double least = whole_us;
  for (int64_t waves = 1; waves <= 2; ++waves) {
    const int64_t room = waves * multiprocessors / tiles, most = k / (4 * TERM_BLOCK),
                  count = room < most ? room : most;
    if (count < 2) continue;
    const double rounds = double(ceil_div(tiles * count, multiprocessors));
    const double area = rounds * tile * tile / (double(count) * rate);
    const double ends = 3 * rounds + 2.6 + double(count) * double(best.rows * best.ld) * 4 / 3e6;
    const double time = area * 2 * double(k) / operations_per_us + ends;
    if (time < least) least = time, best.count = int(count), best.rounds_area = area, best.ends = ends;
  }
  return best;
}
}  // namespace accurate_detail

constexpr AccurateSplitK accurate_split_k(int64_t m, int64_t n, int64_t k) {
  const AccurateTileChoice whole = choose_accurate_tile(m, n, k, PLAN_MULTIPROCESSORS);
  // Whole tiles are up to a fifth faster than they are thought to be where k is long.
  const double us = 0.9 * (whole.rounds_area * 2 * double(k) / PLAN_OPERATIONS_PER_US + whole.ends);
  return accurate_detail::fastest_split_k(m, n, k, us, PLAN_OPERATIONS_PER_US, 0.95);
}

// Products by mma.sync: the largest tile that a device has with such sums, of 128 rows.
constexpr AccurateSplitK mma_split_k(MmaProduct product, int64_t m, int64_t n, int64_t k) {
  if (product != MmaProduct::fp16x2) return {};
  const double us = 0.9 * accurate_detail::mma_product_us(accurate_detail::fastest_mma_tile(product, m, n, k), k);
  return accurate_detail::fastest_split_k(m, n, k, us, accurate_detail::PLAN_MMA_OPERATIONS_PER_US, 1);
}

// ---------------------------------------------------------------- a matrix times its own transpose
// One triangle of the tiles of C, mirrored, and one split pass for both operands. The lower triangle has the bits of
// products with their k in one part, the upper one has not: so where this is done depends on the call alone.
inline constexpr AccurateTile triangle_tiles[] = {AccurateTile::tall_256x128, AccurateTile::even_128x128};

// The fastest tile for n rows by estimate. Clusters of tall ones are squares.
constexpr AccurateTileChoice choose_triangle_tile(int64_t n, int64_t k, int64_t multiprocessors) {
  AccurateTileChoice best{};
  double least = 0;
  for (const auto& t : accurate_detail::tile_rates) {
    if (std::ranges::find(triangle_tiles, t.tile) == std::end(triangle_tiles)) continue;
    const int64_t side = ceil_div(n, t.rows),
                  rounds = ceil_div(side * (side + 1) / 2 * (t.rows / t.cols), multiprocessors);
    const double area = double(rounds) * t.rows * t.cols / t.rate;
    const double time = area * 2 * double(k) / PLAN_OPERATIONS_PER_US + t.ends;
    if (least == 0 || time < least) least = time, best = {t.tile, TERM_BLOCK, area, t.ends};
  }
  return best;
}

// Where it is faster. Products of few tiles are not: there a triangle has fewer tiles than there are multiprocessors.
// Nor are those with a short k, as the mirrored stores take longer than those by TMA: on an H200 k of 426 to 568 took
// 0.88 to 1.26 times as long as whole products, k of 737 to 1024 0.65 to 0.8 times.
constexpr bool computes_triangle(const SgemmArgs& p) {
  constexpr int64_t LEAST_K = 640;
  if (!p.symmetric || p.k < LEAST_K || !terms_fit(p.k) || accurate_split_k(p.m, p.n, p.k).count > 1) return false;
  const AccurateTileChoice whole = choose_accurate_tile(p.m, p.n, p.k, PLAN_MULTIPROCESSORS);
  return whole.k_parts == 1 &&
         choose_triangle_tile(p.n, p.k, PLAN_MULTIPROCESSORS).rounds_area <= 0.95 * whole.rounds_area;
}

// ---------------------------------------------------------------- the workspace
// Statuses, records of segments, the terms of A and B, sums of split-K. What fp16x2 rejects goes to bf16x6 in the same
// place; only the statuses, one for each, outlive that.
struct AccuratePlan {
  int64_t k_blocks;
  SplitLayout a, b;
  std::size_t segments_begin, a_begin, b_begin, sums_begin, bytes;

  constexpr AccuratePlan(const SgemmArgs& p, Terms kind, int64_t columns_of_a_panel = TERM_BLOCK,
                         const AccurateSplitK& split_k = {})
      : k_blocks(ceil_div(p.k, TERM_BLOCK)),
        a(p.m, p.k, kind),
        b(p.n, p.k, kind, columns_of_a_panel),
        segments_begin(256),
        a_begin(segments_begin + (p.k > RangeBound::ONE_PIECE ? SEGMENT_RECORD_BYTES : 0)),
        b_begin(a_begin + a.bytes),
        sums_begin(b_begin + b.bytes),
        bytes(sums_begin + split_k.bytes()) {}
};

std::size_t fp16x2_workspace(const SgemmArgs& p);
std::size_t bf16x6_workspace(const SgemmArgs& p);
std::size_t fp16x2_mma_workspace(const SgemmArgs& p);
std::size_t fp16x2_mma_k8_workspace(const SgemmArgs& p);
std::size_t bf16x6_mma_workspace(const SgemmArgs& p);

// Float32 additions on the way of one product into its sum (accumulation_depth.h).
template <MmaProduct PRODUCT>
int64_t mma_depth(const SgemmArgs& p) {
  if (const int parts = mma_split_k(PRODUCT, p.m, p.n, p.k).count; parts > 1)
    return ceil_div(ceil_div(p.k, TERM_BLOCK), parts) + ceil_div(parts, 4) + 2;
  const MmaTileShape& tile = planned_mma_tile(PRODUCT, p.m, p.n, p.k);
  return ceil_div(ceil_div(p.k, tile.promoted_k), tile.k_parts) + tile.k_parts - 1;
}

// Whether the tensor memory accelerator can store C. It does so in units of 16 bytes, and beyond the end of a row that
// is not a multiple of them. Other calls use ordinary stores.
inline bool allows_tma_store(const SgemmArgs& p) { return aligned<4>(p.c.data, p.c.rs) && p.n % 4 == 0; }
// Whether an addend's rows are read by 16 bytes. Else the stores are ordinary ones too.
inline bool allows_vectors(const ConstMatrix& addend) { return addend.cs == 1 && aligned<4>(addend.data, addend.rs); }

}  // namespace fl
