// Split-K: where there are few tiles and a long k, blocks take ranges of k and store their sums in the workspace; a
// second kernel adds them up (split_k.cuh). How many ranges follows from the call and the tile alone. Same call, same
// bits, whatever a cost says: the constants of all rules are frozen.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "plan/accumulation_depth.h"

namespace fl {

// `splits` is 1 where splitting k does not pay. The sums of a range are [batch][m][ld].
struct SplitKPlan {
  int splits;
  int64_t ld;

  int64_t stride(const SgemmArgs& p) const { return p.batch * p.m * ld; }  // from one range to the next, in floats
  std::size_t bytes(const SgemmArgs& p) const {
    return splits == 1 ? 0 : std::size_t(splits) * std::size_t(stride(p)) * sizeof(float);
  }
};

// What a tile and its family say of it. Ranges are whole units of k. A range takes latency_k_us for each of its k, and
// for every wave of blocks tile_us and k_us for each k.
struct SplitKRule {
  int BM, BN;
  int64_t groups;      // of a block, which share a range
  int64_t unit;        // of k
  bool whole_units;    // groups take units in turn, or else lines of each
  int64_t most_tiles;  // -1: k is never split
  int64_t short_k;     // up to which it is not
  int64_t least_units, most_waves;
  double latency_k_us = 0, tile_us, k_us;

  constexpr int64_t range(int64_t k, int64_t splits) const {  // of k, each but the last
    return ceil_div(ceil_div(k, unit), splits) * unit;
  }
};
SplitKPlan split_k_plan(const SgemmArgs& p, const SplitKRule& rule);

// The most float32 additions that one product goes through in `splits` ranges of k.
int64_t depth_of_splits(int64_t k, const SplitKRule& rule, int64_t splits);

template <class Tile>
int64_t tiles_of(const SgemmArgs& p, const Tile& tile) {
  return ceil_div(p.m, tile.BM) * ceil_div(p.n, tile.BN) * p.batch;
}

}  // namespace fl
