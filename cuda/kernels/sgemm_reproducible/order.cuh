// How the sums of blocks of k become C where precision="reproducible" gives their order (docs/reproducible.md).
#pragma once

#include "core/problem.h"
#include "cuda/kernels/common/float4.cuh"
#include "plan/reproducible_plan.h"

namespace fl {

// The call as kernels compute it that add an empty sum, +0, to what there is: times -0 that changes nothing, not even
// the sign of a zero.
inline SgemmArgs with_empty_sum(SgemmArgs p) {
  if (p.k == 0 && p.beta != 0.0f) p.alpha = -0.0f;
  return p;
}

// Four neighbours of a row, of which the first `exist` exist. by16: they can be accessed together.
__device__ __forceinline__ void move4(float* to, const float* from, int exist, bool by16 = true) {
  if (by16 && exist >= 4) return copy4(to, from);
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < exist) to[j] = from[j];
}

// What the sum of a block does to C. Only the first one sees beta, and where that is 0 C is not read.
struct BlockUpdate {
  float alpha, old_scale;
  bool reads;

  __device__ __forceinline__ BlockUpdate(const SgemmArgs& p, bool first)
      : alpha(p.alpha), old_scale(first ? p.beta : 1.0f), reads(old_scale != 0.0f) {}

  __device__ __forceinline__ float operator()(float sum, float old) const {
    return reads ? fmaf(alpha, sum, old_scale * old) : alpha * sum;
  }
  // Four neighbours of a row whose fours are aligned, of which the first `exist` exist.
  __device__ __forceinline__ void load4(float* old, const float* c, int exist) const {
    if (reads) move4(old, c, exist);
  }
  // ADDS: behind the first block.
  template <bool ADDS = false>
  __device__ __forceinline__ void apply4(const float* sums, float* c) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) c[j] = ADDS ? fmaf(alpha, sums[j], c[j]) : (*this)(sums[j], c[j]);
  }
};

}  // namespace fl
