// What becomes of a finished sum of a product on its way into C or y. Every product kernel that scales by itself uses
// this functor, so that a bias, an activation or a C that is read from elsewhere is a change in one place.
#pragma once

#include "core/problem.h"
#include "cuda/kernels/common/float4.cuh"

namespace fl {

// alpha * sum + beta * old. The old values are read from `source`, which may be another matrix than the one that the
// result goes to, and not at all where beta is 0: C may hold NaN then, or nothing yet.
struct LinearCombination {
  float alpha, beta;

  __device__ __forceinline__ float operator()(float sum, const float* source) const {
    const float scaled = alpha * sum;
    return beta == 0.0f ? scaled : fmaf(beta, *source, scaled);
  }

  __device__ __forceinline__ void store(float* c, float sum) const { *c = (*this)(sum, c); }

  // Four neighbours of a row, of which the first `exist` exist; 16-byte accesses where all do.
  __device__ __forceinline__ void store4(float* c, const float* sums, int exist) const {
    if (exist >= 4) {
      alignas(16) float old[4] = {};
      if (beta != 0.0f) copy4(old, c);
      alignas(16) float result[4];
      for (int j = 0; j < 4; ++j) result[j] = (*this)(sums[j], &old[j]);
      return copy4(c, result);
    }
    for (int j = 0; j < 4; ++j)
      if (j < exist) store(c + j, sums[j]);
  }
};

// The epilogue of a call: SgemmArgs or SgemvArgs.
template <class Args>
__device__ __forceinline__ LinearCombination epilogue(const Args& p) {
  return {p.alpha, p.beta};
}

__device__ __forceinline__ void store(const SgemmArgs& p, int64_t batch, int64_t i, int64_t j, float sum) {
  epilogue(p).store(p.c.data + batch * p.c.bs + i * p.c.rs + j * p.c.cs, sum);
}

__device__ __forceinline__ void store(const SgemvArgs& p, float* y, int64_t i, float sum) {
  epilogue(p).store(y + i * p.y.inc, sum);
}

}  // namespace fl
