#include "cost/reproducible_cost.h"

namespace fl {

SlabsCost slabs_cost(const SgemmArgs& p, const DeviceSpec& device, bool tail_apart) {
  constexpr double launch_us = 1.5;  // of one more kernel, which waits for the one before
  const SlabPlan plan = slab_plan(p);
  const int64_t blocks = std::max<int64_t>(blocks_of_k(p), 1), rounds = p.batch / plan.problems;
  const int64_t groups = ceil_div(blocks, plan.at_a_time);
  SgemmArgs product = p;
  product.k = std::min(p.k, REPRODUCIBLE_BLOCK), product.batch = plan.problems * std::min(plan.at_a_time, blocks);
  product.alpha = 1.0f, product.beta = 0.0f, product.c = {nullptr, plan.ld, 1, p.m * plan.ld};
  if (plan.problems == 1) product.a.bs = REPRODUCIBLE_BLOCK * p.a.cs, product.b.bs = REPRODUCIBLE_BLOCK * p.b.rs;
  SgemmArgs problem = p;
  problem.batch = plan.problems;
  const int64_t products = plan.problems > 1 ? blocks : groups + (tail_apart && p.k % REPRODUCIBLE_BLOCK != 0);
  const double add_us = slab_addition_us(problem, int(std::min(plan.at_a_time, blocks)), device);
  return {product, double(groups * rounds),
          double(rounds) * (double(groups) * add_us + launch_us * double(products - 1))};
}

}  // namespace fl
