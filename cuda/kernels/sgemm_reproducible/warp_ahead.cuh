// A warp that multiplies a tile of its own over a block of k, where a scheduler has one or two such warps.
#pragma once

#include "core/layout.h"
#include "cuda/kernels/sgemm_reproducible/order.cuh"
#include "cuda/kernels/sgemm_strict/warp_tiles.cuh"

namespace fl {

// What a lane needs of a stage for four k.
template <class T>
struct Fragments {
  float4 a[T::TM], b[4][T::TN / 4];

  __device__ __forceinline__ void load(uint32_t stage, int k, Lane lane) {
    constexpr int A_ROW = T::CopyA::LD * 4, B_ROW = T::CopyB::LD * 4;
    const uint32_t from_a = stage + lane.row * A_ROW + k * 4;
    const uint32_t from_b = stage + T::CopyA::BYTES + k * B_ROW + lane.col * 16;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a[i] = ptx::load4(from_a + i * 8 * A_ROW);
#pragma unroll
    for (int l = 0; l < 4; ++l)
#pragma unroll
      for (int j = 0; j < T::TN / 4; ++j) b[l][j] = ptx::load4(from_b + l * B_ROW + j * 64);
  }
  __device__ __forceinline__ void multiply(float (&acc)[T::TM][T::TN]) const {
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      float a_frag[T::TM], b_frag[T::TN];
#pragma unroll
      for (int i = 0; i < T::TM; ++i) a_frag[i] = component(a[i], l);
#pragma unroll
      for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], b[l][j / 4]);
      outer_product(acc, a_frag, b_frag);
    }
  }
};

// acc += the product of the stage's tiles, in ascending k. As multiply_stage, whose loads wait for one another: with
// many warps to a scheduler that does not matter.
template <class T>
__device__ __forceinline__ void multiply_ahead(float (&acc)[T::TM][T::TN], uint32_t stage, Lane lane) {
  Fragments<T> fragments[2];
  fragments[0].load(stage, 0, lane);
#pragma unroll
  for (int k = 0; k < T::BK; k += 4) {
    if (k + 4 < T::BK) fragments[(k / 4 + 1) % 2].load(stage, k + 4, lane);
    fragments[k / 4 % 2].multiply(acc);
  }
}

// A copy of 16 bytes of A that straddles the end of k leaves +0 behind it, which takes the sign off a sum of -0.
inline Operand in_whole_fours_of_k(Operand a, int64_t k) {
  if (a.path == CopyPath::by16 && k % 4 != 0) a.path = CopyPath::by4;
  return a;
}

}  // namespace fl
