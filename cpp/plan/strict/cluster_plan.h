// The range of k of each warp of a cluster, whole steps. Where accurate products have a limit on the length of their
// sums, warps add up runs of WARP_RUN k.
#pragma once

#include <cstddef>

#include "plan/accumulation_depth.h"
#include "plan/strict/cluster_tiles.h"

namespace fl {

constexpr int64_t WARP_RUN = 64;
constexpr int64_t warp_range(int64_t k, const ClusterSplitKTile& tile) {
  return ceil_div(ceil_div(k, ClusterSplitKTile::BK), tile.ranges()) * ClusterSplitKTile::BK;
}
inline bool sums_in_runs(const SgemmArgs& p, const ClusterSplitKTile& tile) {
  return warp_range(p.k, tile) > WARP_RUN && deepest_allowed(p) != any_depth;
}

inline int64_t accumulation_depth(const SgemmArgs& p, const ClusterSplitKTile& tile) {
  const int64_t range = warp_range(p.k, tile);
  const int64_t of_a_warp = sums_in_runs(p, tile) ? WARP_RUN + ceil_div(range, WARP_RUN) - 1 : range;
  return of_a_warp + tile.k_groups + tile.cluster_k - 2;
}
constexpr std::size_t workspace_bytes(const SgemmArgs&, const ClusterSplitKTile&) { return 0; }

}  // namespace fl
