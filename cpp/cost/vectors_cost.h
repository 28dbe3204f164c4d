// What few rows or columns are expected to take as products with vectors: SGEMV's model of such a batch.
#pragma once

#include <algorithm>

#include "cost/gemv_cuda_cost.h"
#include "plan/vectors_plan.h"

namespace fl {

constexpr int64_t MOST_VECTORS = 16;

// `US` is SGEMV's model. Where L2 does not hold the matrix, each vector reads it from memory.
template <auto US>
struct ByVectors;
template <class C, double (*US)(const SgemvArgs&, const DeviceSpec&, const C&)>
struct ByVectors<US> {
  static double us(const SgemmArgs& p, const DeviceSpec& device, const C& cost) {
    const VectorsPlan plan = vectors_plan(p);
    if (plan.launches > 1 || plan.first.batch > MOST_VECTORS) return NOT_FOR_SHAPE_US;
    const double us = US(plan.first, device, cost);
    return reads_from_memory(p) ? std::max(us, gemv_bytes(plan.first) / device.bytes_per_us) : us;
  }
};
template <auto US>
constexpr auto by_vectors_us = &ByVectors<US>::us;

}  // namespace fl
