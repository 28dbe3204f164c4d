// What a warp multiplies in a product by mma.sync: fragments of a stage, in registers.
#pragma once

#include "cuda/kernels/common/ptx_mma.cuh"
#include "cuda/kernels/sgemm_accurate/mma/mma_copies.cuh"

namespace fl {

template <class T>
using MmaSums = float[T::MT][T::NT][4];

// The fragments that a warp multiplies: its columns of B for a whole stage, and 16 rows of A. Terms, 16 k, registers.
template <class T>
struct MmaFragments {
  using S = typename T::S;
  static constexpr int KS = T::BK / 16;
  uint32_t a[S::COUNT][KS][4], b[S::COUNT][KS][T::NT / 2][4];

  __device__ __forceinline__ void load_a(int term, uint32_t from) {
#pragma unroll
    for (int s = 0; s < KS; ++s) ptx::load_matrices(a[term][s], (from ^ s * 32) + term * T::A_TERM_BYTES);
  }
  __device__ __forceinline__ void load_b(int term, uint32_t from) {
    // Of strips, a warp with an odd number of pairs may begin with the second pair of a strip.
    const uint32_t next_strip = T::STRIPS && T::NT % 4 != 0 ? threadIdx.x / 32 % T::WARPS_N % 2 * T::STRIP_BYTES : 0;
#pragma unroll
    for (int s = 0; s < KS; ++s)
#pragma unroll
      for (int pair = 0; pair < T::NT / 2; ++pair) {
        const uint32_t at =
            T::STRIPS ? (from ^ pair % 2 * 32) + pair / 2 * T::STRIP_BYTES + pair % 2 * next_strip : from ^ pair * 32;
        ptx::load_matrices_transposed(b[term][s][pair], at + term * T::B_TERM_BYTES + s * 16 * (T::STRIPS ? 64 : 128));
      }
  }
  __device__ __forceinline__ void multiply(float (&sums)[T::NT][4], int a_term, int b_term) const {
#pragma unroll
    for (int s = 0; s < KS; ++s)
#pragma unroll
      for (int j = 0; j < T::NT; ++j) {
        const uint32_t *const x = &b[b_term][s][j / 2][j % 2 * 2], *const y = a[a_term][s];
        if constexpr (!T::ASYNC)
          ptx::mma_k8(sums[j], y[0], y[1], x[0], sums[j]), ptx::mma_k8(sums[j], y[2], y[3], x[1], sums[j]);
        else if constexpr (S::KIND == Terms::fp16x2) ptx::mma(sums[j], a[a_term][s], x[0], x[1], sums[j]);
        else ptx::mma_bf16(sums[j], a[a_term][s], x[0], x[1], sums[j]);
      }
  }
};

// The last of the products of a strip that reads a term.
template <class S>
constexpr int last_use(bool of_a, int term) {
  int last = 0;
  for (int product = 0; product < S::PRODUCTS; ++product)
    if ((of_a ? S::a_term(product) : S::b_term(product)) == term) last = product;
  return last;
}

// One warp's part of a stage, whose first fragments are in registers already. Each term is loaded for what comes next
// as soon as its last product is issued, in the last strip from the next stage, which next_stage() has waited for.
template <class T, class NextStage>
__device__ __forceinline__ void multiply_stage(MmaSums<T>& sums, MmaFragments<T>& x, uint32_t a_at, uint32_t next_a_at,
                                               uint32_t next_b_at, NextStage&& next_stage) {
  using S = typename T::S;
#pragma unroll
  for (int i = 0; i < T::MT; ++i) {
    const bool last = i + 1 == T::MT;
    float sum[T::NT][4] = {};
#pragma unroll
    for (int product = 0; product < S::PRODUCTS; ++product) {
      x.multiply(sum, S::a_term(product), S::b_term(product));
      if (last && product == 0) next_stage();
#pragma unroll
      for (int term = 0; term < S::COUNT; ++term) {
        if (last_use<S>(true, term) == product) x.load_a(term, last ? next_a_at : a_at + (i + 1) * 16 * T::BK * 2);
        if (last && last_use<S>(false, term) == product) x.load_b(term, next_b_at);
      }
    }
#pragma unroll
    for (int j = 0; j < T::NT; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) sums[i][j][r] += sum[j][r];
  }
}

}  // namespace fl
