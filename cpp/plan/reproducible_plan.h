// The order of the sums of precision="reproducible" (docs/reproducible.md), and how few tiles with a long k are cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/layout.h"
#include "core/problem.h"
#include "plan/reproducible_block.h"

namespace fl {

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
constexpr int64_t MOST_SLABS_BYTES = int64_t{32} << 20;  // L2 holds them until they are added

inline SlabPlan slab_plan(const SgemmArgs& p) {
  const int64_t blocks = std::max<int64_t>(blocks_of_k(p), 1);
  SlabPlan plan{.ld = ceil_div(p.n, 4) * 4, .problems = p.batch > blocks ? p.batch : 1, .at_a_time = 1};
  const int64_t bytes = plan.problems * p.m * plan.ld * int64_t{sizeof(float)};
  plan.at_a_time = std::clamp<int64_t>(MOST_SLABS_BYTES / std::max<int64_t>(bytes, 1), 1, blocks);
  return plan;
}

inline std::size_t slabs_workspace(const SgemmArgs& p) {
  if (is_plain_product(p)) return 0;
  const SlabPlan plan = slab_plan(p);
  return std::size_t(plan.at_a_time * plan.problems * p.m * plan.ld) * sizeof(float);
}

// ---------------------------------------------------------------- one row or one column
// A column of C as the row that it is of the transposed product, C^T = B^T A^T. A product with one row stays as it is.
inline SgemmArgs as_row(const SgemmArgs& p, int64_t column) {
  if (p.m == 1) return p;
  SgemmArgs row = p;
  row.m = 1, row.n = p.m, row.symmetric = false;
  row.a = {p.b.data + column * p.b.cs, 0, p.b.rs, p.b.bs};
  row.b = {p.a.data, p.a.cs, p.a.rs, p.a.bs};
  row.c = {p.c.data + column * p.c.cs, 0, p.c.rs, p.c.bs};
  return row;
}

// Of such a row: its kernels take any number of blocks of any number of problems at once.
inline SlabPlan vector_slab_plan(const SgemmArgs& row) {
  const int64_t ld = ceil_div(row.n, 4) * 4, most = MOST_SLABS_BYTES / (ld * int64_t{sizeof(float)});
  SlabPlan plan{.ld = ld, .problems = std::clamp<int64_t>(most, 1, row.batch), .at_a_time = 1};
  plan.at_a_time = std::clamp<int64_t>(most / plan.problems, 1, std::max<int64_t>(blocks_of_k(row), 1));
  return plan;
}

// How its kernel copies B and x, 16 bytes at a time or 4. Not along k: neighbouring outputs at once, by 16 bytes where
// four are of the same `segments`, the blocks of k of all problems. What a step reads of a few outputs lies closer
// together along k, whatever the layout.
struct VectorCopies {
  bool along_k = true, b_by16 = false, x_by16 = false;
};
inline VectorCopies vector_copies(const SgemmArgs& row, int64_t segments) {
  const bool along_k = row.b.rs == 1 || row.n < 8;
  const bool lines_by16 = aligned<4>(row.b.data, along_k ? (row.n > 1 ? row.b.cs : 0) : row.b.rs, row.b.bs);
  const bool b_by16 = along_k ? row.b.rs == 1 : row.b.cs == 1 && (row.n % 4 == 0 || segments == 1);
  return {along_k, b_by16 && lines_by16, row.a.cs == 1 && aligned<4>(row.a.data, row.a.bs)};
}

// None for one block of k, whose sums go to C at once.
inline std::size_t vector_workspace(const SgemmArgs& p) {
  if (p.k <= REPRODUCIBLE_BLOCK) return 0;
  const SlabPlan plan = vector_slab_plan(as_row(p, 0));
  return std::size_t(plan.at_a_time * plan.problems * plan.ld) * sizeof(float);
}

}  // namespace fl
