#include "cost/reproducible_cost.h"

namespace fl {

SlabsCost slabs_cost(const SgemmArgs& p, const DeviceSpec& device, bool tail_apart) {
  constexpr double launch_us = 1.5;  // of one more kernel, which waits for the one before
  const SlabPlan plan = slab_plan(p);
  const int64_t blocks = std::max<int64_t>(blocks_of_k(p), 1), rounds = p.batch / plan.problems;
  const bool tail = tail_apart && p.k % REPRODUCIBLE_BLOCK != 0;
  const int64_t together = std::min(plan.at_a_time, blocks), groups = ceil_div(blocks, together), whole = blocks - tail;
  SgemmArgs product = p;
  product.k = std::min(p.k, REPRODUCIBLE_BLOCK), product.batch = plan.problems * std::min(together, whole);
  product.alpha = 1.0f, product.beta = 0.0f, product.c = {nullptr, plan.ld, 1, p.m * plan.ld};
  if (plan.problems == 1) product.a.bs = REPRODUCIBLE_BLOCK * p.a.cs, product.b.bs = REPRODUCIBLE_BLOCK * p.b.rs;
  SgemmArgs problem = p, last = product;
  problem.batch = plan.problems;
  last.k = tail ? p.k % REPRODUCIBLE_BLOCK : 0, last.batch = plan.problems;
  const int64_t products = plan.problems > 1 ? blocks : groups + tail;
  // C is read and written again by each group but the first; slabs that L2 does not hold are written to memory.
  const double slab = 4.0 * double(plan.problems) * double(p.m) * double(plan.ld);
  const double written = std::max(slab - double(MOST_SLABS_BYTES), 0.0);
  const double add_us = double(groups) * slab_addition_us(problem, int(together), device) +
                        (2.0 * double(groups - 1) * slab + double(groups) * written) / device.bytes_per_us;
  const double of_whole = double(whole) / double(std::max<int64_t>(std::min(together, whole), 1));
  return {product, last, double(rounds) * of_whole, double(rounds),
          double(rounds) * (add_us + launch_us * double(products - 1))};
}

double vector_us(const SgemmArgs& p, const DeviceSpec& device, const VectorCost& cost) {
  const SgemmArgs row = as_row(p, 0);
  const SlabPlan plan = vector_slab_plan(row);
  const int64_t blocks = blocks_of_k(row);
  const bool by16 = vector_copies(row, std::max<int64_t>(blocks, 1) * row.batch).b_by16;
  const double factor = !device.has(feature_cp_async) ? cost.by_registers : by16 ? 1.0 : cost.by4;
  const double bytes = 4.0 * double(row.k) * double(row.n + 1) * double(row.batch);
  const double groups = double(ceil_div(row.batch, plan.problems)) * double(ceil_div(blocks, plan.at_a_time));
  const double add = blocks > 1 ? groups * cost.add_us + 1e-6 * cost.slab_ps * double(blocks) : 0.0;
  const double one = cost.start_us + without_pdl(device, cost.no_pdl_us) + add +
                     1e-6 * cost.chain_ps * double(std::min(row.k, REPRODUCIBLE_BLOCK)) +
                     factor * bytes / cost.memory_bytes_per_us;
  return p.m == 1 || p.n == 1 ? one : one * double(p.n) + cost.more_us;
}

}  // namespace fl
