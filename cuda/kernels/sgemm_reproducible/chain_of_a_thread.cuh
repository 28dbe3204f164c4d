// The sum of a block of k of one output, by a thread that loads the factors itself.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fl {

// fma(a[k], b[k], sum) for `count` values of k, at most AT_A_TIME, whose loads are under way together.
template <int AT_A_TIME>
__device__ __forceinline__ float add_products(float sum, const float* a, int64_t a_stride, const float* b,
                                              int64_t b_stride, int count) {
  float a_frag[AT_A_TIME] = {}, b_frag[AT_A_TIME] = {};
#pragma unroll
  for (int u = 0; u < AT_A_TIME; ++u)
    if (u < count) a_frag[u] = __ldg(a + u * a_stride), b_frag[u] = __ldg(b + u * b_stride);
#pragma unroll
  for (int u = 0; u < AT_A_TIME; ++u)
    if (u < count) sum = fmaf(a_frag[u], b_frag[u], sum);
  return sum;
}

// The chain over k from `begin` to `end`, from +0 on.
template <int AT_A_TIME>
__device__ __forceinline__ float chain_of_fmas(const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                                               int64_t begin, int64_t end) {
  float sum = 0.0f;
  int64_t k = begin;
#pragma unroll 1
  for (; k + AT_A_TIME <= end; k += AT_A_TIME)
    sum = add_products<AT_A_TIME>(sum, a + k * a_stride, a_stride, b + k * b_stride, b_stride, AT_A_TIME);
  return add_products<AT_A_TIME>(sum, a + k * a_stride, a_stride, b + k * b_stride, b_stride,
                                 static_cast<int>(end - k));
}

}  // namespace fl
