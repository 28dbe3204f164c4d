// What a warp of simt_warps.cuh or simt_boxes.cuh does with its slice of k once that has arrived.
#pragma once

#include "cuda/kernels/sgemm_strict/simt_tile.cuh"
#include "plan/chains.h"

namespace fl {

// Sums of the runs of a slice, in the order of k. Of each 64 k they take one addition for 64 FMAs.
template <class T, bool = T::RUNS>
struct SliceRuns {
  __device__ __forceinline__ void slot_done(float (&)[T::TM][T::TN]) {}
  __device__ __forceinline__ void end(float (&)[T::TM][T::TN]) const {}
};
template <class T>
struct SliceRuns<T, true> {
  static constexpr int SLOTS = SLICE_RUN / T::KS;
  float sums[T::TM][T::TN] = {};
  int left = SLOTS;

  __device__ __forceinline__ void slot_done(float (&acc)[T::TM][T::TN]) {
    if (--left > 0) return;
    left = SLOTS;
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) sums[i][j] += acc[i][j], acc[i][j] = 0.0f;
  }
  __device__ __forceinline__ void end(float (&acc)[T::TM][T::TN]) const {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) acc[i][j] += sums[i][j];
  }
};

// A warp's sums and fragments. Those of A are four k of a row, those of B a row of one k and of the next. All are
// loaded while what comes before them is multiplied, four k to a trip of the loop: unrolled over a slot, the FMAs came
// in an order that cost a fifth of the issue slots in the register banks: 12.2 us instead of 11.5 with 48 x 48 tiles.
template <class T>
struct SliceMath {
  static constexpr int A_ROW = T::CopyA::LD * 4, B_ROW = T::CopyB::LD * 4;
  float acc[T::TM][T::TN];
  float4 a_rows[T::TM];
  float b_even[T::TN], b_odd[T::TN];
  SliceRuns<T> runs;

  static __device__ __forceinline__ void load_b(float (&b_frag)[T::TN], uint32_t b) {
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], ptx::load4(b + j * 16));
  }
  __device__ __forceinline__ void start(uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a_rows[i] = ptx::load4(a + i * 8 * A_ROW);
    load_b(b_even, b);
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) acc[i][j] = 0.0f;
  }

  template <int L>
  __device__ __forceinline__ void one_k(const float (&b_frag)[T::TN], uint32_t a_next) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = (i + L * T::TM) % 2 ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(component(a_rows[i], L), b_frag[j], acc[i][j]);
      }
      if (L == 3) a_rows[i] = ptx::load4(a_next + i * 8 * A_ROW);
    }
  }

  // The four k at b, and the fragments of the four behind them.
  __device__ __forceinline__ void four_k(uint32_t b, uint32_t a_next, uint32_t b_next) {
    load_b(b_odd, b + B_ROW);
    one_k<0>(b_even, 0);
    load_b(b_even, b + 2 * B_ROW);
    one_k<1>(b_odd, 0);
    load_b(b_odd, b + 3 * B_ROW);
    one_k<2>(b_even, 0);
    load_b(b_even, b_next);
    one_k<3>(b_odd, a_next);
  }

  // The warp's part of the sums, as fours of neighbours. `one`: see sum_and_store in simt_ring_store.cuh.
  __device__ __forceinline__ void store(uint32_t to, float one, int lane) const {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        ptx::store4(to + ((i * T::TN + j) / 4 * 32 + lane) * 16,
                    one * float4{acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]});
  }
};

}  // namespace fl
