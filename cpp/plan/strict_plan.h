// What decides the order of sums in the strict SGEMM kernels, and what memory that takes: how k is split
// over the grid, over the warps of a cluster, in runs; and which of several kernels computes. All of it follows from
// the call and the tile alone. Same call, same bits, whatever a cost says: the constants are frozen.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "plan/accumulation_depth.h"
#include "plan/strict_tiles.h"

namespace fl {

// Split-K: where there are few tiles and a long k, blocks take ranges of k and leave their sums in the workspace, in
// rows of `ld` floats; a second kernel adds them up (split_k.cuh). `splits` is 1 where that does not pay.
struct SplitKPlan {
  int splits;
  int64_t ld;
};
SplitKPlan split_k_plan(const SgemmArgs& p, const PipelinedTile& tile);
SplitKPlan split_k_plan(const SgemmArgs& p, const InterleavedTile& tile);
SplitKPlan split_k_plan(const SgemmArgs& p, const SliceTile& tile);
SplitKPlan split_k_plan(const SgemmArgs& p, const MixedTile& tile);
// The k of each range but the last, whole steps of such a tile.
constexpr int64_t slices_range(int64_t k, int splits) {
  return ceil_div(ceil_div(k, SliceTile::BK), splits) * SliceTile::BK;
}
// The k of each range but the last, for such a tile; and the call as it is computed: a tall tile's long side is the
// longer one.
constexpr int64_t mixed_range(int64_t k, int splits) {
  return ceil_div(ceil_div(k, MixedTile::K_UNIT), splits) * MixedTile::K_UNIT;
}
SgemmArgs turned(const SgemmArgs& p, const MixedTile& tile);

// A matrix times its own transpose: whether only those tiles are computed that meet the diagonal or lie below it, and
// how many those are of `rows` rows of tiles, `wide` times as wide as high. No bits depend on it.
//
// With a k of 68 mirrored stores took 1.4 to 1.6 times as long as a whole product on an H200, from 162 on 0.9 times.
inline constexpr int64_t TRIANGLE_LEAST_K = 128;
bool computes_triangle(const SgemmArgs& p, const PipelinedTile& tile);
constexpr int64_t lower_tiles(int64_t rows, int64_t wide) {
  const int64_t squares = rows / wide, rest = rows % wide;
  return wide * (squares * (squares + 1) / 2) + rest * (squares + 1);
}
int64_t computed_tiles(const SgemmArgs& p, const PipelinedTile& tile);

// Stream-K: whether the tiles of a last wave that `blocks` do not fill are shared out evenly (stream_k.cuh). No
// bits depend on it.
bool stream_k_pays(const SgemmArgs& p, const PipelinedTile& tile, int64_t blocks);
// The sums of a tile for each block, and a flag for each of its multiplying warps; 0 where it does not pay.
std::size_t stream_k_bytes(const SgemmArgs& p, const PipelinedTile& tile);

// The range of k of each warp of a cluster, whole steps. Where accurate products have a limit on the length of their
// sums, warps add up runs of WARP_RUN k.
constexpr int64_t WARP_RUN = 64;
constexpr int64_t warp_range(int64_t k, const ClusterSplitKTile& tile) {
  return ceil_div(ceil_div(k, ClusterSplitKTile::BK), tile.ranges()) * ClusterSplitKTile::BK;
}
bool sums_in_runs(const SgemmArgs& p, const ClusterSplitKTile& tile);

// Which tile a product with a short k gets, whose bits do not depend on it. Where there are enough for all
// multiprocessors a square one, or a wider one where storing C is all there is to do; else smaller ones, with more
// stages where there are so few that four to a multiprocessor hold them all.
const ShortKTile& short_k_tile(const SgemmArgs& p);

// The most float32 additions that one product goes through (accumulation_depth.h), and bytes of workspace.
int64_t accumulation_depth(const SgemmArgs& p, const PipelinedTile& tile);
int64_t accumulation_depth(const SgemmArgs& p, const ClusterSplitKTile& tile);
int64_t accumulation_depth(const SgemmArgs& p, const InterleavedTile& tile);
int64_t accumulation_depth(const SgemmArgs& p, const SliceTile& tile);
int64_t accumulation_depth(const SgemmArgs& p, const MixedTile& tile);
inline int64_t accumulation_depth(const SgemmArgs& p, const WarpTile&) { return sequential_depth(p); }

std::size_t workspace_bytes(const SgemmArgs& p, const PipelinedTile& tile);
std::size_t workspace_bytes(const SgemmArgs& p, const InterleavedTile& tile);
std::size_t workspace_bytes(const SgemmArgs& p, const SliceTile& tile);
std::size_t workspace_bytes(const SgemmArgs& p, const MixedTile& tile);
constexpr std::size_t workspace_bytes(const SgemmArgs&, const ClusterSplitKTile&) { return 0; }
constexpr std::size_t workspace_bytes(const SgemmArgs&, const WarpTile&) { return 0; }

// The same as the table wants it.
template <auto TILE>
int64_t strict_depth(const SgemmArgs& p) {
  return accumulation_depth(p, TILE);
}
template <auto TILE>
std::size_t strict_workspace(const SgemmArgs& p) {
  return workspace_bytes(p, TILE);
}

}  // namespace fl
