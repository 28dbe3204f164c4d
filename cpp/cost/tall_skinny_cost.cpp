#include "cost/tall_skinny_cost.h"

#include <algorithm>
#include <cmath>

#include "core/device_spec.h"
#include "core/layout.h"
#include "plan/tall_skinny_plan.h"

namespace fl {
namespace {

// Of 9 to 16 columns that are not wide. Large ones were measured at ten shapes with k of 100 to 500: B goes without a
// question where all 16 columns exist, and others take twice the time of the long operand.
double sixteen_factor(const SgemmArgs& left, const TallSkinnyPlan& plan) {
  if (!reads_from_memory(left)) return 1.48;
  if (!plan.rows) return 1.78;
  return left.n < 16 ? 2.0 : left.b.cs == 1 ? 1.16 : 1.3;
}

}  // namespace

// Fitted to 200 random shapes of up to 64 columns, and to 2 to 16 columns of up to 1 GB. Waves of blocks: what a
// multiprocessor can read. The end, where sums of many columns meet, is what remains of a short k.
double tall_skinny_cost(const SgemmArgs& p) {
  const SgemmArgs left = long_operand_left(p);
  const TallSkinnyPlan plan = tall_skinny_plan(left);
  if (plan.panels > 4) return 1e6;
  const double bytes = 4.0 * double(left.m) * double(p.k) * double(p.batch) * double(plan.panels);
  const double blocks = double(plan.row_blocks) * double(plan.panels) * double(p.batch) * plan.splits;
  const int resident = plan.resident_warps(), each = plan.rows_of_warp();
  const double waves = std::ceil(blocks / double(h200_spec().multiprocessors * (resident / plan.warps)));
  const double block_us = double(std::min(plan.split_k, p.k)) * (plan.rows ? each * plan.warps : 16 * each) * resident /
                          plan.warps / 10.4e3;
  const double in_turn = waves * block_us + (waves - 1) * 2.7;
  const double read = std::max(bytes / (bytes > 20e6 ? 4.3e6 : 3.1e6), in_turn);
  double slower = (plan.wide            ? (plan.rows && aligned16(left.a) ? 1.05 : 1.2)
                   : plan.columns == 16 ? sixteen_factor(left, plan)
                                        : 1.0) *
                  (aligned16(left.a) ? 1.0 : 1.12) * (plan.panels > 1 ? 1.17 : 1);
  if (plan.rows && !right_aligned16(left, plan)) slower *= plan.panels > 1 ? 1.6 : 1.22;
  return 1.27 + 0.2 * plan.columns + (plan.rows && plan.splits > 1 ? 0.45 : 0) + read * slower;
}

}  // namespace fl
