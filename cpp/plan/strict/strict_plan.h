// What decides the order of sums in the strict SGEMM kernels with tiles, and what memory that takes, as the table wants
// it.
#pragma once

#include "plan/strict/cluster_plan.h"
#include "plan/strict/multistage_plan.h"
#include "plan/strict/pipelined_plan.h"
#include "plan/strict/warp_tiles.h"

namespace fl {

inline int64_t accumulation_depth(const SgemmArgs& p, const WarpTile&) { return sequential_depth(p); }
constexpr std::size_t workspace_bytes(const SgemmArgs&, const WarpTile&) { return 0; }

template <auto TILE>
int64_t strict_depth(const SgemmArgs& p) {
  return accumulation_depth(p, TILE);
}
template <auto TILE>
std::size_t strict_workspace(const SgemmArgs& p) {
  return workspace_bytes(p, TILE);
}

}  // namespace fl
