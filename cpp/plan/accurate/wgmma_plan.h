// Which tile computes a product by Hopper's warpgroup instructions, and how its k is cut: what costs and kernels have
// to agree on.
//
// Constants here decide the order of sums, and so the bits of results. They are frozen: today's values are those of the
// costs they were fitted with, but a cost that is fitted again must not change them.
#pragma once

#include <algorithm>
#include <utility>

#include "plan/accurate/range_bound.h"
#include "plan/accurate/split_k.h"
#include "plan/accurate/tile_choice.h"
#include "plan/accurate/wgmma_tiles.h"
#include "plan/transposed.h"

namespace fl {

// Operations of a multiprocessor in a microsecond in large products. Frozen, like the rates and ends of the tiles.
constexpr double PLAN_OPERATIONS_PER_US = 225e6 / double(PLAN_MULTIPROCESSORS);

// The fastest tile by estimate, of those whose k is in `k_parts`, or of all for 0. A block has one single tile, so
// these are for products with no more tiles than multiprocessors, unless all tiles with such parts are single.
constexpr TileChoice fastest_wgmma_tile(int64_t m, int64_t n, int64_t k, int64_t multiprocessors, int k_parts,
                                        bool in_16_bits = false) {
  return fastest_tile(fp16x2_tiles, k, PLAN_OPERATIONS_PER_US, [=](const WgmmaTile& t) {
    if (k_parts != 0 && t.k_parts() != k_parts) return -1.0;
    const int64_t rounds = ceil_div(ceil_div(m, t.BM) * ceil_div(n, t.BN) * t.cluster_k, multiprocessors);
    if ((t.single && rounds > 1 && k_parts < 2) || (t.unswizzled() && n > LARGEST_N_OF_96)) return -1.0;
    const double rate = in_16_bits ? t.rate_in_16_bits : t.rate;
    return double(rounds) * t.BM * t.BN / (t.cluster_k * rate);
  });
}

// A product as it was called, where the rows of C follow one another.
inline SgemmArgs rows_first(const SgemmArgs& p) { return p.c.cs == 1 ? p : transposed(p); }
// One operand in 16 bits has to be A: tiles are taller than wide, and kernels are made for one of both.
inline bool b_alone_in_16_bits(const SgemmArgs& p) { return !p.stored[0].in_16_bits() && p.stored[1].in_16_bits(); }
inline SgemmArgs in_16_bits_first(const SgemmArgs& p) { return b_alone_in_16_bits(p) ? transposed(p) : p; }

// In how many parts the k of a tile is summed decides bits, so it is chosen for the reference device; which of the
// tiles with such parts, for the device that is there.
constexpr TileChoice choose_wgmma_tile(int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  const TileChoice planned = fastest_wgmma_tile(m, n, k, PLAN_MULTIPROCESSORS, 0);
  if (multiprocessors == PLAN_MULTIPROCESSORS) return planned;
  return fastest_wgmma_tile(m, n, k, multiprocessors, fp16x2_tiles[planned.index].k_parts());
}

constexpr AccurateSplitK wgmma_split_k(int64_t m, int64_t n, int64_t k) {
  // Whole tiles are up to a fifth faster than they are thought to be where k is long.
  const double us = 0.9 * choose_wgmma_tile(m, n, k, PLAN_MULTIPROCESSORS).us(k, PLAN_OPERATIONS_PER_US);
  return fastest_split_k(m, n, k, us, PLAN_OPERATIONS_PER_US, fp16x2_split_k.rate);
}

// Of a product that is transposed the cut of the call.
inline AccurateSplitK wgmma_split_k(const SgemmArgs& p) {
  const SgemmArgs call = rows_first(p);
  AccurateSplitK cut = wgmma_split_k(call.m, call.n, call.k);
  if (p.c.cs != 1) std::swap(cut.rows, cut.ld);
  return cut;
}

// Whether second terms are scaled up, and their products have sums of their own. Decides bits, so it is by the tile of
// the reference device. 64x96 with three sums runs short of registers: 14.4 us instead of 13.5 at 768. Such products
// cannot read terms that products of other sizes share; of operands of so many lines the split pass takes no longer for
// both than for one.
constexpr int64_t MOST_LINES_APART = 704;
inline bool second_terms_apart(const SgemmArgs& p) {
  if (std::max(p.m, p.n) > MOST_LINES_APART || wgmma_split_k(p).count > 1) return false;
  const SgemmArgs call = rows_first(p);
  const WgmmaTile& planned = fp16x2_tiles[choose_wgmma_tile(call.m, call.n, p.k, PLAN_MULTIPROCESSORS).index];
  return planned.may_be_apart() && !planned.unswizzled();
}
inline RangeBound two_terms_bound(const SgemmArgs& p) {
  if (!second_terms_apart(p)) return RangeBound(Terms::fp16x2, p.k);
  return RangeBound(Terms::fp16x2, p.k, APART_ERROR, APART_PROMOTED_K, SECOND_TERM_SCALE);
}

// ---------------------------------------------------------------- a matrix times its own transpose
// One triangle of the tiles of C, mirrored, and one split pass for both operands. The lower triangle has the bits of
// products with their k in one part, the upper one has not: so where this is done depends on the call alone.

// The fastest tile for n rows by estimate. Clusters of tall ones are squares.
constexpr TileChoice choose_triangle_tile(int64_t n, int64_t k, int64_t multiprocessors) {
  return fastest_tile(fp16x2_tiles, k, PLAN_OPERATIONS_PER_US, [=](const WgmmaTile& t) {
    const int64_t side = ceil_div(n, t.BM), rounds = ceil_div(side * (side + 1) / 2 * t.cluster_n, multiprocessors);
    return t.has_triangle ? double(rounds) * t.BM * t.BN / t.rate : -1;
  });
}

// Where it is faster. Products of few tiles are not: there a triangle has fewer tiles than there are multiprocessors.
// Nor are those with a short k, as the mirrored stores take longer than those by TMA: on an H200 k of 426 to 568 took
// 0.88 to 1.26 times as long as whole products, k of 737 to 1024 0.65 to 0.8 times.
constexpr bool computes_triangle(const SgemmArgs& p) {
  constexpr int64_t LEAST_K = 640;
  if (!p.symmetric || p.k < LEAST_K || !terms_fit(p.k) || wgmma_split_k(p.m, p.n, p.k).count > 1) return false;
  const TileChoice whole = choose_wgmma_tile(p.m, p.n, p.k, PLAN_MULTIPROCESSORS);
  return fp16x2_tiles[whole.index].k_parts() == 1 &&
         choose_triangle_tile(p.n, p.k, PLAN_MULTIPROCESSORS).rounds_area <= 0.95 * whole.rounds_area;
}

// Whether three bf16 terms are tried where two fp16 terms are rejected: from 2^34 multiply-adds on in launches of their
// own. Below that, where k is cut over the grid, one launch splits operands of so many lines: at least a record and a
// total for each 16 of them have to have room (split/segments.cuh).
constexpr int64_t MOST_LINES_OF_CUT_K = 4096;
static_assert(2 * (MOST_LINES_OF_CUT_K / SPLIT_LINES + 1) <= SEGMENT_BLOCKS + MOST_SEGMENTED_GROUPS);
constexpr bool falls_back_to_three_terms(const SgemmArgs& p) {
  return terms_fit(p.k) &&
         (p.m + p.n <= MOST_LINES_OF_CUT_K || wgmma_split_k(p.m, p.n, p.k).count == 1 || has_bf16x6_fallback(p));
}
// Below that, three terms sum up k in parts where it is long, as cuBLAS does, for whole sums have larger errors, and in
// two where tiles are so few that each has two blocks. A triangle is summed up whole.
constexpr int64_t LONGEST_PART = 2048;
constexpr bool in_one_round(const WgmmaTile& t, const SgemmArgs& p, int64_t multiprocessors = PLAN_MULTIPROCESSORS) {
  return t.cluster_k * ceil_div(p.m, t.BM) * ceil_div(p.n, t.BN) <= multiprocessors;
}
constexpr bool three_terms_in_pairs(const SgemmArgs& p) {
  return p.k <= 2 * LONGEST_PART && wgmma_split_k(p.m, p.n, p.k).count == 1 &&
         (in_one_round(bf16x6_single_64x64c2, p) ||
          (!in_one_round(bf16x6_single_64x64, p) && in_one_round(bf16x6_single_192x64c2, p)));
}
constexpr AccurateSplitK three_terms_split_k(const SgemmArgs& p) {
  AccurateSplitK best = wgmma_split_k(p.m, p.n, p.k);
  if (three_terms_in_pairs(p)) best.count = 2;
  if (best.count > 1 || p.k <= LONGEST_PART || has_bf16x6_fallback(p) || computes_triangle(p)) return best;
  const double area = double(best.rows) * double(best.ld), tile = ACCURATE_SPLIT_K_TILE * ACCURATE_SPLIT_K_TILE;
  double least = 0;
  for (int64_t count = ceil_div(p.k, LONGEST_PART); count <= std::min(p.k / 128, int64_t{16}); ++count) {
    const double rounds = double(ceil_div(int64_t(area / tile) * count, PLAN_MULTIPROCESSORS)) / double(count);
    const double time = rounds * tile * 4 * double(p.k) / PLAN_OPERATIONS_PER_US + double(count) * area * 4 / 3e6;
    if (least == 0 || time < least) least = time, best.count = int(count);
  }
  return best;
}
// Whether they may be computed first, with terms beside those of two: 320 MB for 2^25 numbers.
constexpr bool has_room_for_three_terms(const SgemmArgs& p) {
  return falls_back_to_three_terms(p) && !has_bf16x6_fallback(p) && double(p.k) * double(p.m + p.n) <= 0x1p25;
}

}  // namespace fl
