#include "cost/tall_skinny_cost.h"

#include <algorithm>
#include <cmath>

#include "core/layout.h"
#include "plan/tall_skinny_plan.h"

namespace fl {
namespace {

// Of 9 to 16 columns that are not wide: B goes without a question where all 16 columns exist, and others take twice the
// time of the long operand.
double sixteen_factor(const SgemmArgs& left, const TallSkinnyPlan& plan, const TallSkinnyCost& cost) {
  if (!reads_from_memory(left)) return cost.sixteen_near;
  if (!plan.rows) return cost.sixteen_columns;
  return left.n < 16 ? cost.sixteen_fewer : left.b.cs == 1 ? cost.sixteen_aligned : cost.sixteen_transposed;
}

// Rows of wide products ask for more than devices before Hopper have.
double wide_factor(const SgemmArgs& left, const TallSkinnyPlan& plan, const DeviceSpec& device,
                   const TallSkinnyCost& cost) {
  const bool halved = plan.rows && device.shared_per_block < std::size_t(capability(90).shared_per_block);
  return (plan.rows && aligned16(left.a) ? cost.wide_aligned : cost.wide) * (halved ? cost.wide_halved : 1.0);
}

double slower(const SgemmArgs& left, const TallSkinnyPlan& plan, const DeviceSpec& device, const TallSkinnyCost& cost) {
  const double columns = plan.wide            ? wide_factor(left, plan, device, cost)
                         : plan.columns == 16 ? sixteen_factor(left, plan, cost)
                                              : 1.0;
  double factor = columns * (aligned16(left.a) ? 1.0 : cost.unaligned) * (plan.panels > 1 ? cost.panels : 1);
  if (plan.rows && !right_aligned16(left, plan))
    factor *= plan.panels > 1 ? cost.right_unaligned_panels : cost.right_unaligned;
  return factor;
}

}  // namespace

double tall_skinny_us(const SgemmArgs& p, const DeviceSpec& device, const TallSkinnyCost& cost) {
  const SgemmArgs left = long_operand_left(p);
  const TallSkinnyPlan plan = tall_skinny_plan(left);
  if (plan.panels > 4) return NOT_FOR_SHAPE_US;
  const double bytes = 4.0 * double(left.m) * double(p.k) * double(p.batch) * double(plan.panels);
  const double blocks = double(plan.row_blocks) * double(plan.panels) * double(p.batch) * plan.splits;
  const int resident = plan.resident_warps(), each = plan.rows_of_warp();
  const double multiprocessors = device.multiprocessors;
  const double waves = std::ceil(blocks / (multiprocessors * (resident / plan.warps)));
  const double block_us =
      1e-6 * cost.element_ps * double(std::min(plan.split_k, p.k)) * (plan.rows ? each * plan.warps : 16 * each);
  const double in_turn = std::ceil(blocks / multiprocessors) * block_us + (waves - 1) * cost.wave_us;
  const double rate = bytes > cost.near_l2_bytes ? cost.memory_bytes_per_us : cost.near_bytes_per_us;
  return cost.start_us + without_pdl(device, cost.no_pdl_us) + cost.column_us * plan.columns +
         (plan.splits > 1 ? cost.split_us + 1e-3 * cost.split_ns * plan.splits : 0) +
         std::max(bytes / rate, in_turn) * slower(left, plan, device, cost);
}

}  // namespace fl
