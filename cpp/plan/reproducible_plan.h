// The order of the sums of precision="reproducible" (docs/reproducible.md), and how few tiles with a long k are cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

// Chains of FMAs over so many k, whose sums are added in ascending order. A part of the specification.
constexpr int64_t REPRODUCIBLE_BLOCK = 256;
constexpr int64_t blocks_of_k(const SgemmArgs& p) { return ceil_div(p.k, REPRODUCIBLE_BLOCK); }

inline int64_t reproducible_depth(const SgemmArgs& p) {
  return std::min(p.k, REPRODUCIBLE_BLOCK) + std::max<int64_t>(blocks_of_k(p) - 1, 0);
}

// One block at most, whose sum is the result, scaled, or added to C: what every strict kernel in ascending k computes.
inline bool is_plain_product(const SgemmArgs& p) {
  return p.k <= REPRODUCIBLE_BLOCK && (p.beta == 0.0f || (p.alpha == 1.0f && p.beta == 1.0f));
}

// Else blocks of k are multiplied as plain products, each with a slab of the workspace as its result, m rows of `ld`
// floats: of one problem some blocks at a time, or where there are more problems than blocks, the same block of all of
// them. When `at_a_time` of these are done, their slabs are added to C in order. No bits depend on any of it.
struct SlabPlan {
  int64_t ld, problems, at_a_time;
};
inline SlabPlan slab_plan(const SgemmArgs& p) {
  constexpr int64_t most_bytes = int64_t{32} << 20;  // L2 holds them until they are added
  const int64_t blocks = std::max<int64_t>(blocks_of_k(p), 1);
  SlabPlan plan{.ld = ceil_div(p.n, 4) * 4, .problems = p.batch > blocks ? p.batch : 1, .at_a_time = 1};
  const int64_t bytes = plan.problems * p.m * plan.ld * int64_t{sizeof(float)};
  plan.at_a_time = std::clamp<int64_t>(most_bytes / std::max<int64_t>(bytes, 1), 1, blocks);
  return plan;
}

inline std::size_t slabs_workspace(const SgemmArgs& p) {
  if (is_plain_product(p)) return 0;
  const SlabPlan plan = slab_plan(p);
  return std::size_t(plan.at_a_time * plan.problems * p.m * plan.ld) * sizeof(float);
}

}  // namespace fl
