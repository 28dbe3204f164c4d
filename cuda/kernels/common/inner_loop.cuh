// What the inner loops of tiled kernels have in common.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fl {

// How many of the next BK steps along k exist; zero or less behind the last one.
__device__ __forceinline__ int k_left(int64_t left, int BK) { return static_cast<int>(min(left, int64_t{BK})); }

// acc += a_frag * b_frag, every value of one with every value of the other. The walk turns at the end of a row, so
// that each FMA shares an operand with the one before it: that one comes from the reuse cache and leaves the two banks
// of the register file to the others.
template <int TM, int TN>
__device__ __forceinline__ void outer_product(float (&acc)[TM][TN], const float (&a_frag)[TM],
                                              const float (&b_frag)[TN]) {
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int step = 0; step < TN; ++step) {
      const int j = i % 2 ? TN - 1 - step : step;
      acc[i][j] = fmaf(a_frag[i], b_frag[j], acc[i][j]);
    }
}

}  // namespace fl
