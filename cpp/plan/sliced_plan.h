// How a product of sliced operands is laid out and guarded: what its rules and its kernels have to agree on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/layout.h"
#include "core/problem.h"

namespace fl {

template <class Args>
struct Kernel;

// What a float32 number is cut into: two fp16 slices with three products of slices, or three bf16 slices with six.
enum class Slices { fp16x2, bf16x6 };
constexpr int slice_count(Slices slices) { return slices == Slices::fp16x2 ? 2 : 3; }

// A slice holds 64 x 64 blocks of 2-byte numbers: 64 lines (rows of A, columns of B) by 64 k. The slices of a block lie
// side by side, and the blocks of 64 lines one after the other along k.
constexpr int SLICE_BLOCK = 64, SLICE_LINE_BYTES = 64 * 2, SLICE_BYTES = 64 * SLICE_LINE_BYTES;
// Lines that a block of threads of the split pass takes; it reports on them in one word.
constexpr int SPLIT_LINES = 16;
// The bound of docs/accuracy.md holds from k = 64 on, but short sums of positive numbers are more accurate in plain
// float32: below this k the fallback runs. Above the other the counters of the split pass are too narrow.
constexpr int64_t SLICED_SMALLEST_K = 256, SLICED_LARGEST_K = int64_t{1} << 20;
constexpr bool sliced_fits(int64_t k) { return k >= SLICED_SMALLEST_K && k <= SLICED_LARGEST_K; }

// What a product leaves for the kernels behind it, and for the log, in the first words of the workspace.
constexpr unsigned VERDICT_REFUSED = 1, VERDICT_WIDE = 2, VERDICT_NOT_FINITE = 4;
constexpr unsigned VERDICT_DONE = 8;        // something else has computed the product
constexpr unsigned VERDICT_GIVE_BACK = 16;  // no bar: the tensor cores lose something of this product

// Up to here tiles may have 96 columns. Their strips of B have as many.
constexpr int64_t SLICED_WIDEST_96 = 4096;

// The split of one operand in memory: a word of the guard for each 16 lines, the exponent of each line, the slices of
// each strip of lines. Offsets and size.
struct SplitLayout {
  int64_t tile;            // lines of a strip: 64, or 96 columns of B for tiles that have as many
  int64_t strips, groups;  // the latter of 16 lines
  std::size_t exponents, slices, strip_bytes, bytes;

  constexpr SplitLayout(int64_t lines, int64_t k, Slices kind, int64_t tile_lines = SLICE_BLOCK)
      : tile(tile_lines),
        strips(ceil_div(lines, tile)),
        groups(ceil_div(lines, SPLIT_LINES)),
        exponents(aligned(std::size_t(groups) * sizeof(unsigned))),
        // A tile of the product may reach three strips past the last one. What it reads there goes nowhere.
        slices(aligned(exponents + std::size_t((strips + 3) * tile) * sizeof(int))),
        strip_bytes(std::size_t(ceil_div(k, SLICE_BLOCK) * slice_count(kind) * tile) * SLICE_LINE_BYTES),
        bytes(slices + std::size_t(strips + 3) * strip_bytes) {}

 private:
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
};

// Few lines that are long: their k is split in strips by blocks of their own (sliced_strips.cuh), of which two at a
// time fit on each of 132 multiprocessors. From some hundred blocks of 16 lines on memory is busy without.
constexpr int64_t SPLIT_PIECE = 512, STRIP_BLOCKS = 528, MOST_STRIPS = 8, STRIP_GROUPS = 100;
constexpr int split_strips(int64_t groups, int64_t k) {
  const int64_t pieces = ceil_div(k, SPLIT_PIECE);
  if (groups < 1 || groups > STRIP_GROUPS || pieces < 8) return 1;
  const int64_t blocks = pieces < 32 ? STRIP_BLOCKS / 2 : STRIP_BLOCKS;  // a second round is long only where strips are
  return int(std::min({blocks / groups, pieces / 3, MOST_STRIPS}));
}
// What a strip has found of its 16 lines.
struct StripRecord {
  unsigned largest[SPLIT_LINES], large_count[SPLIT_LINES], flags, arrived;
};
constexpr std::size_t STRIP_BYTES = (STRIP_BLOCKS + STRIP_GROUPS) * sizeof(StripRecord) / 256 * 256 + 256;

// What a product of two slices costs of the bound besides k / 64, in units of u: with Hopper's instructions, and with
// those of every GPU since compute capability 8.0, where older tensor cores cut more of what they add.
constexpr int WGMMA_ERROR = 55, MMA_ERROR = 97;

// The guard in numbers; docs/accuracy.md derives them. Units of u = 2^-24, the rounding error of float32: of the k
// units that the bound allows, `spare` are left when everything else has taken its worst share. Half of them go to
// numbers that are not small, half to those that are.
struct SlicedBound {
  float small, large;  // a scaled number is small below the one, if it is not zero, and large from the other on
  // If there are small numbers: for how many k both factors have to be large, for every element of C.
  unsigned both_large;

  SlicedBound(Slices slices, int64_t k, int product_error = WGMMA_ERROR) {
    if (slices == Slices::bf16x6) {
      small = 0x1p-50f, large = 0x1p-22f, both_large = 1;
      return;
    }
    const double spare = double(k) * 63 / 64 - product_error;
    small = float(2 / spare);
    // The scale of a long line leaves a factor 16 of headroom, so its numbers are that much smaller.
    large = k <= ONE_PIECE ? 128.0f : 16.0f;
    const double small_error_per_large = spare / 2 * double(large) * double(large) / (1 << 14);
    both_large = unsigned(double(k) / (1 + small_error_per_large)) + 1;
  }

  static constexpr int64_t ONE_PIECE = 1024;  // of k: up to here the split pass holds all of a line
};

// Tiles of the product. Those called single are one for each block, or for each cluster of two that shares its k
// (sliced_single.cuh), so there must not be more of them than run at a time.
enum class SlicedTile {
  tall_256x128,
  middle_192x128,
  middle_192x96,
  even_128x128,
  small_128x64,
  single_128x64,
  single_64x96,
  single_64x64,
  single_64x64_by_2,
  ranges_128x128
};
struct SlicedChoice {
  SlicedTile tile;
  int64_t b_tile;      // columns of a strip of B
  double rounds_area;  // elements of C that one multiprocessor computes, weighed by the rate of the tile
  double ends;         // microseconds: the first tile's way in and the last one's way out
};
constexpr double SLICED_RATE = 225e6 / 132;  // operations of a multiprocessor in a microsecond, large products

constexpr SlicedChoice sliced_choice(int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  constexpr struct {
    SlicedTile tile;
    int rows, cols, blocks;
    double rate, ends;
    bool single;
  } tiles[] = {{SlicedTile::tall_256x128, 256, 128, 1, 1.0, 7.5, false},
               {SlicedTile::middle_192x128, 192, 128, 1, 0.95, 4, false},
               {SlicedTile::middle_192x96, 192, 96, 1, 0.92, 4, false},
               {SlicedTile::even_128x128, 128, 128, 1, 0.95, 4, false},
               {SlicedTile::small_128x64, 128, 64, 1, 0.9, 3.3, false},
               {SlicedTile::single_128x64, 128, 64, 1, 0.9, 2.7, true},
               {SlicedTile::single_64x96, 64, 96, 1, 0.82, 2.8, true},
               {SlicedTile::single_64x64, 64, 64, 1, 0.8, 2.5, true},
               {SlicedTile::single_64x64_by_2, 64, 64, 2, 0.75, 3, true}};
  SlicedChoice best{};
  double least = 0;
  for (const auto& t : tiles) {
    const int64_t rounds = ceil_div(ceil_div(m, t.rows) * ceil_div(n, t.cols) * t.blocks, multiprocessors);
    const bool wide = t.cols % SLICE_BLOCK != 0;
    if ((t.single && rounds > 1) || (wide && n > SLICED_WIDEST_96)) continue;
    const double area = double(rounds) * t.rows * t.cols / (t.blocks * t.rate);
    const double time = area * 2 * double(k) / SLICED_RATE + t.ends;
    if (least == 0 || time < least) least = time, best = {t.tile, wide ? t.cols : SLICE_BLOCK, area, t.ends};
  }
  return best;
}

// Few tiles and a long k: blocks take ranges of the k of a tile and leave their sums in the workspace
// (sliced_ranges.cuh). The cut is part of the specification of the result's bits, so it depends on the call alone.
constexpr int RANGE_TILE = 128;
struct SlicedRanges {
  int count = 1;             // 1: k is not cut
  int64_t rows = 0, ld = 0;  // of a range's sums, whole tiles
  double rounds_area = 0, ends = 0;
  constexpr std::size_t bytes() const { return count == 1 ? 0 : std::size_t(count * rows * ld) * sizeof(float); }
};
constexpr SlicedRanges sliced_ranges(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t multiprocessors = 132;
  const int64_t down = ceil_div(m, RANGE_TILE), across = ceil_div(n, RANGE_TILE), tiles = down * across;
  SlicedRanges best{1, down * RANGE_TILE, across * RANGE_TILE};
  if (tiles > multiprocessors || k < 4096) return best;
  const SlicedChoice whole = sliced_choice(m, n, k, multiprocessors);
  // Whole tiles are up to a fifth faster than they are thought to be where k is long.
  double least = 0.9 * (whole.rounds_area * 2 * double(k) / SLICED_RATE + whole.ends);
  for (int64_t waves = 1; waves <= 2; ++waves) {
    const int64_t room = waves * multiprocessors / tiles, most = k / (4 * SLICE_BLOCK),
                  count = room < most ? room : most;
    if (count < 2) continue;
    const double rounds = double(ceil_div(tiles * count, multiprocessors));
    const double area = rounds * RANGE_TILE * RANGE_TILE / (double(count) * 0.95);
    const double ends = 3 * rounds + 2.6 + double(count) * double(best.rows * best.ld) * 4 / 3e6;
    const double time = area * 2 * double(k) / SLICED_RATE + ends;
    if (time < least) least = time, best.count = int(count), best.rounds_area = area, best.ends = ends;
  }
  return best;
}

// The workspace: verdicts, records of strips, the splits of A and B, sums of ranges. What fp16x2 refuses goes to bf16x6
// in the same place; only the verdicts, one for each, outlive that.
struct SlicedPlan {
  int64_t k_blocks;
  SplitLayout a, b;
  std::size_t strips_begin, a_begin, b_begin, sums_begin, bytes;

  constexpr SlicedPlan(const SgemmArgs& p, Slices kind, int64_t columns_of_b = SLICE_BLOCK,
                       const SlicedRanges& ranges = {})
      : k_blocks(ceil_div(p.k, SLICE_BLOCK)),
        a(p.m, p.k, kind),
        b(p.n, p.k, kind, columns_of_b),
        strips_begin(256),
        a_begin(strips_begin + (p.k > SlicedBound::ONE_PIECE ? STRIP_BYTES : 0)),
        b_begin(a_begin + a.bytes),
        sums_begin(b_begin + b.bytes),
        bytes(sums_begin + ranges.bytes()) {}
};

// The same for fp16x2_mma: 128 x 128, or 64 x 128 where those leave fewer multiprocessors idle.
struct MmaChoice {
  bool large;
  double rounds_area;
};
constexpr MmaChoice mma_choice(int64_t m, int64_t n, int64_t multiprocessors) {
  const auto area = [&](int rows, double rate) {
    return double(ceil_div(ceil_div(m, rows) * ceil_div(n, 128), multiprocessors)) * rows * 128 / rate;
  };
  const double large = area(128, 1.0), flat = area(64, 0.85);
  return {large <= flat, large <= flat ? large : flat};
}

// Whether the copy engine can store C. It does so in units of 16 bytes, and beyond the end of a row that is not a
// multiple of them. Other calls use ordinary stores.
inline bool sliced_stored_by_boxes(const SgemmArgs& p) { return aligned<4>(p.c.data, p.c.rs) && p.n % 4 == 0; }

// Whether what fp16x2 refuses is worth two more launches. They take about 5 us of every call, and bf16x6 is three times
// as fast as the strict kernel behind it.
constexpr bool bf16x6_stands_by(const SgemmArgs& p) { return double(p.m) * double(p.n) * double(p.k) >= 0x1p34; }

// Who computed a product of the row that begins with `slices`, in words, from the first two words of the workspace; the
// second counts if three slices stand by.
std::string sliced_answer(Slices slices, bool three_stand_by, const SgemmArgs& p, const unsigned* verdicts);

// What a row cuts its operands into, if it does.
std::optional<Slices> slices_of(const Kernel<SgemmArgs>& row);

const char* accurate_only(const SgemmArgs& p);
double fp16x2_cost(const SgemmArgs& p);
double bf16x6_cost(const SgemmArgs& p);
double fp16x2_mma_cost(const SgemmArgs& p);
std::size_t fp16x2_workspace(const SgemmArgs& p);
std::size_t bf16x6_workspace(const SgemmArgs& p);
std::size_t fp16x2_mma_workspace(const SgemmArgs& p);

}  // namespace fl
