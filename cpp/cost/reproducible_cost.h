// What the kernels of precision="reproducible" that work in slabs are expected to take: the strict kernel that
// multiplies the blocks of k, by its own model, and what adds its results.
#pragma once

#include "core/problem.h"
#include "cost/strict_cost.h"
#include "plan/reproducible_plan.h"

namespace fl {

struct SlabsCost {
  SgemmArgs product;  // of a group of blocks, as a batch
  double groups;
  double other_us;  // launches, and the additions
};
SlabsCost slabs_cost(const SgemmArgs& p, const DeviceSpec& device);

// `US` is the model of the strict kernel.
template <auto US>
struct InSlabs;
template <class C, double (*US)(const SgemmArgs&, const DeviceSpec&, const C&)>
struct InSlabs<US> {
  static double us(const SgemmArgs& p, const DeviceSpec& device, const C& cost) {
    if (is_plain_product(p)) return US(p, device, cost);
    const SlabsCost slabs = slabs_cost(p, device);
    return slabs.groups * US(slabs.product, device, cost) + slabs.other_us;
  }
};
template <auto US>
constexpr auto in_slabs_us = &InSlabs<US>::us;

}  // namespace fl
