// Strict SGEMM with few columns, or rows, whose long operand begins anywhere: it is read once, and blocks keep the
// other one in shared memory.
#include "cuda/kernels/sgemm_narrow/narrow_columns.cuh"
#include "cuda/kernels/sgemm_narrow/narrow_rows.cuh"
#include "plan/tall_skinny_plan.h"

namespace fl {

void sgemm_strict_narrow(const SgemmArgs& p, const Context& ctx) {
  const SgemmArgs left = long_operand_left(p);
  const NarrowPlan plan = narrow_plan(left);
  if (plan.rows) return narrow_rows(left, plan, ctx);
  switch (plan.fours) {
    case 1: return narrow_columns<1>(left, plan, ctx);
    case 2: return narrow_columns<2>(left, plan, ctx);
    default: return narrow_columns<3>(left, plan, ctx);
  }
}

}  // namespace fl
