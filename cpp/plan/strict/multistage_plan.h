// What decides the order of sums of tiles whose warps all copy and multiply, and what memory that takes.
#pragma once

#include "plan/strict/multistage_tiles.h"
#include "plan/strict/split_k_plan.h"

namespace fl {

SplitKRule split_k_rule(const MultistageTile& tile);

// The call as it is computed: a tall tile's long side is the longer one.
SgemmArgs transposed_problem(const SgemmArgs& p, const MultistageTile& tile);

inline SplitKPlan split_k_plan(const SgemmArgs& p, const MultistageTile& tile) {
  return split_k_plan(transposed_problem(p, tile), split_k_rule(tile));
}
inline int64_t accumulation_depth(const SgemmArgs& p, const MultistageTile& tile) {
  return depth_of_splits(p.k, split_k_rule(tile), split_k_plan(p, tile).splits);
}
inline std::size_t workspace_bytes(const SgemmArgs& p, const MultistageTile& tile) {
  return split_k_plan(p, tile).bytes(transposed_problem(p, tile));
}

}  // namespace fl
