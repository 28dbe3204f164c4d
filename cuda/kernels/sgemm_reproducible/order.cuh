// What becomes of the sums of blocks of k where precision="reproducible" gives their order (docs/reproducible.md).
#pragma once

#include "core/problem.h"
#include "plan/reproducible_plan.h"

namespace fl {

struct BlockOrder {
  float alpha, beta;

  // C is read where beta is not 0, and nowhere else.
  __device__ __forceinline__ float first(float sum, const float* c) const {
    return beta == 0.0f ? alpha * sum : fmaf(alpha, sum, beta * *c);
  }
  __device__ __forceinline__ float next(float sum, float so_far) const { return fmaf(alpha, sum, so_far); }
  __device__ __forceinline__ float without_terms(const float* c) const { return beta == 0.0f ? 0.0f : beta * *c; }
};

}  // namespace fl
