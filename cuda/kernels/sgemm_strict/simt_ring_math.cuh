// What the multiplying warps of simt_ring.cuh do with the tiles that arrive.
#pragma once

#include "cuda/kernels/sgemm_strict/simt_ring_plan.cuh"
#include "cuda/kernels/sgemm_strict/simt_tile.cuh"

namespace fl {

template <class T>
__device__ __forceinline__ Lane lane_of(int lane) {
  return T::WIDE ? Lane::across(lane) : Lane(lane);
}

// A warp's sums. Its fragments have one buffer: those of the next k are loaded one by one as soon as the last FMA that
// needs the old ones has been issued, across the border of two steps as well. Two buffers take 24 registers more and
// were 0.7 % slower.
template <class T>
struct WarpMath {
  static constexpr int A_ROW = (T::BM + 4) * 4, B_ROW = T::b_pitch() * 4;
  Ring<T> ring;
  uint32_t a_offset, b_offset;  // of the lane's fragments in a slot
  float acc[T::TM][T::TN];
  float a_frag[T::TM], b_frag[T::TN];

  __device__ __forceinline__ void load(uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) unpack(&a_frag[i], ptx::load4(a + i * T::LANE_ROWS * 4));
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], ptx::load4(b + j * T::LANE_COLS * 4));
  }

  // One k. A row's fragment of a is free after its four rows, b's after the last row; that one runs in the same
  // direction as the first row of the next k, so that the fragment which is loaded first is needed first.
  template <bool NEXT>
  __device__ __forceinline__ void rotate(uint32_t a_next, uint32_t b_next) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 && i + 1 < T::TM ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(a_frag[i], b_frag[j], acc[i][j]);
        if (NEXT && i + 1 == T::TM && j % 4 == 3)
          unpack(&b_frag[j - 3], ptx::load4(b_next + (j - 3) * T::LANE_COLS * 4));
      }
      if (NEXT && i % 4 == 3) unpack(&a_frag[i - 3], ptx::load4(a_next + (i - 3) * T::LANE_ROWS * 4));
    }
  }

  __device__ __forceinline__ void zero() {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) acc[i][j] = 0.0f;
  }

  // acc += the sum over the group's steps of one tile.
  __device__ __forceinline__ void multiply(const RingPlan& plan, const Steps& steps, int group) {
    if (group >= steps.count) return;
    ptx::barrier_wait(ring.full(), ring.phase);
    uint32_t a = ring.tiles() + a_offset, b = ring.tiles() + b_offset;
    load(a, b);
    // Behind the end of k there is padding whose products change nothing, so that k comes in pairs, two or more.
    const int tail = T::WHOLE ? T::BK : max((plan.tail + 1) / 2 * 2, 4);
    for (int step = group; step < steps.count; step += T::KG) {
      const uint32_t last_pair = a + ((!T::WHOLE && steps.first + step + 1 == plan.steps ? tail : T::BK) - 2) * A_ROW;
#pragma unroll 1
      do {
        rotate<true>(a + A_ROW, b + B_ROW);
        a += 2 * A_ROW;
        b += 2 * B_ROW;
        asm volatile("" : "+r"(a), "+r"(b));
        rotate<true>(a, b);
      } while (a != last_pair);
      rotate<true>(a + A_ROW, b + B_ROW);
      release();
      if (step + T::KG < steps.count) {
        ptx::barrier_wait(ring.full(), ring.phase);
        a = ring.tiles() + a_offset;
        b = ring.tiles() + b_offset;
        rotate<true>(a, b);
      } else {
        rotate<false>(a, b);
      }
    }
  }

  // Every lane says that it is done with the slot. One per warp would be enough, but a race checker that follows each
  // thread by itself wants all, and that costs nothing that can be measured.
  __device__ __forceinline__ void release() {
    ptx::barrier_arrive(ring.empty());
    ring.template advance<T::KG>();
  }

  __device__ __forceinline__ float4 quad(int q) const {  // q counts rows of the thread tile, four columns at a time
    const float* four = &acc[q / (T::TN / 4)][q % (T::TN / 4) * 4];
    return {four[0], four[1], four[2], four[3]};
  }
  __device__ __forceinline__ void set_quad(int q, float4 sums) {
    unpack(&acc[q / (T::TN / 4)][q % (T::TN / 4) * 4], sums);
  }
};

}  // namespace fl
