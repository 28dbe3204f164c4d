// What decides the order of sums of pipelined tiles, and what memory that takes; how their tiles are shared out.
#pragma once

#include "plan/strict/pipelined_tiles.h"
#include "plan/strict/split_k_plan.h"

namespace fl {

SplitKRule split_k_rule(const PipelinedTile& tile);
inline SplitKPlan split_k_plan(const SgemmArgs& p, const PipelinedTile& tile) {
  return split_k_plan(p, split_k_rule(tile));
}

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

int64_t accumulation_depth(const SgemmArgs& p, const PipelinedTile& tile);
std::size_t workspace_bytes(const SgemmArgs& p, const PipelinedTile& tile);

}  // namespace fl
