#include "plan/narrow_plan.h"

#include <algorithm>

#include "plan/reference_device.h"
#include "plan/tall_skinny_plan.h"

namespace fl {
namespace {

constexpr int64_t FULL = PLAN_MULTIPROCESSORS;  // blocks, from which on all multiprocessors have work

// A block has all of its k in shared memory, so a long one is split.
int64_t least_splits(const NarrowPlan& plan, int64_t k) {
  return std::max<int64_t>(ceil_div(k, narrow_most_k(plan.fours)), 1);
}

// Cut in blocks of so many rows; whether they are enough.
bool cut(NarrowPlan& plan, const SgemmArgs& left, int rows, int ranges, int64_t enough) {
  plan.block_rows = rows, plan.ranges = ranges, plan.row_blocks = ceil_div(left.m, rows);
  return plan.row_blocks * plan.panels * left.batch * least_splits(plan, left.k) >= enough;
}

// Where blocks are few, k is split more often than it has to be.
void split(NarrowPlan& plan, const SgemmArgs& left) {
  constexpr int64_t unit = 32, useful_k = 128;
  const int64_t blocks = std::max<int64_t>(plan.row_blocks * plan.panels * left.batch, 1);
  const int64_t splits = std::max(least_splits(plan, left.k), std::min(FULL / blocks, left.k / useful_k));
  plan.split_k = std::max<int64_t>(ceil_div(ceil_div(left.k, splits), unit) * unit, unit);
  plan.splits = static_cast<int>(std::max<int64_t>(ceil_div(left.k, plan.split_k), 1));
}

}  // namespace

NarrowPlan narrow_plan(const SgemmArgs& left) {
  NarrowPlan plan{.rows = left.a.cs == 1};
  plan.panel_columns = plan.rows ? 4 : 12;
  plan.panels = ceil_div(left.n, plan.panel_columns);
  plan.fours = static_cast<int>(std::clamp<int64_t>(ceil_div(left.n, 4), 1, plan.panel_columns / 4));
  if (plan.rows) {
    const int64_t k = ceil_div(left.k, least_splits(plan, left.k));
    for (int ranges = 1;
         !cut(plan, left, 4 * NARROW_WARPS / ranges, ranges, FULL) && ranges < NARROW_WARPS && k >= 64 * ranges;)
      ranges *= 2;
  } else if (!cut(plan, left, 64, NARROW_WARPS / 2, 2 * FULL)) {
    cut(plan, left, 32, NARROW_WARPS, FULL);
  }
  split(plan, left);
  return plan;
}

std::size_t narrow_workspace(const SgemmArgs& p) { return sums_workspace(p, narrow_plan(long_operand_left(p)).splits); }

}  // namespace fl
