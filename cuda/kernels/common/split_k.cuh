// Products whose k is split over the grid: what the first kernel computes, and the second one, which adds the sums that
// the ranges of k have left in the workspace, in an order that depends on their number alone, and stores the results.
#pragma once

#include "core/context.h"
#include "plan/strict/split_k_plan.h"

namespace fl {

// The call as its first kernel computes it, whose result is that of the first range. Unsplit, it is the call itself.
inline SgemmArgs begin_split_k(const SgemmArgs& p, const SplitKPlan& plan, const Context& ctx) {
  SgemmArgs part = p;
  if (plan.splits > 1) {
    part.alpha = 1.0f, part.beta = 0.0f;
    part.c = {static_cast<float*>(ctx.workspace), plan.ld, 1, p.m * plan.ld};
  }
  return part;
}

// The second kernel, if k is split. It starts while the first one runs and waits for it.
void reduce_split_k(const SgemmArgs& p, const SplitKPlan& plan, const Context& ctx);

}  // namespace fl
