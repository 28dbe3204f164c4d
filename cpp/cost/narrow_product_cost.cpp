#include "cost/narrow_product_cost.h"

#include <algorithm>
#include <cmath>

#include "plan/narrow_plan.h"
#include "plan/tall_skinny_plan.h"

namespace fl {

double narrow_product_us(const SgemmArgs& p, const DeviceSpec& device, const NarrowProductCost& cost) {
  const SgemmArgs left = long_operand_left(p);
  const NarrowPlan plan = narrow_plan(left);
  if (plan.panels > 1) return NOT_FOR_SHAPE_US;
  const double block_k = double(std::min(plan.split_k, left.k)), fours = plan.fours;
  const double steps = block_k / plan.ranges / (plan.rows ? 32 : 1);
  const double waits_us = 1e-3 * steps * (plan.rows ? cost.rows_k_ns : cost.columns_k_ns);
  const double element_ps = (plan.rows ? cost.rows_element_ps : cost.columns_element_ps) +
                            (plan.rows ? cost.rows_fma_ps : cost.columns_fma_ps) * fours;
  const double block_us =
      1e-3 * cost.block_ns * fours + 1e-6 * block_k * (cost.four_ps * fours + element_ps * plan.block_rows);
  const double in_turn = std::ceil(double(plan.blocks(left)) / device.multiprocessors);
  const double bytes = 4.0 * double(left.m) * double(left.k) * double(left.batch);
  const double reads_us = bytes / (bytes > cost.near_l2_bytes ? cost.memory_bytes_per_us : cost.near_bytes_per_us);
  return cost.start_us + without_pdl(device, cost.no_pdl_us) +
         (plan.splits > 1 ? cost.split_us + 1e-3 * cost.split_ns * plan.splits : 0.0) +
         std::max(reads_us, waits_us + in_turn * block_us);
}

}  // namespace fl
