// Tall-skinny products whose long operand is contiguous along k: C[m,n] = A[m,k] B[k,n], n <= 16, rows of A contiguous.
//
// A warp owns 8 rows. Its lanes stand side by side along k and keep the sums of all rows and columns until the end,
// when they are added over the lanes. 16 columns do not fit: there two halves of a warp take 8 columns each of the same
// k, so that 256 FMAs of a lane need 32 reads of 8 or 16 bytes.
//
// B is read again by every block, mostly from L2: 128 rows to a block make that an eighth of A's bytes.
#pragma once

#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_lanes.cuh"

namespace fl {

template <int NR, bool COLUMN_MAJOR, bool WIDE>
struct TallSkinnyRows {
  static constexpr int R = WIDE ? 16 : 8, THREADS = 4096 / R;
  static constexpr int HALVES = NR > 8 ? 2 : 1, LANES = 32 / HALVES, NC = NR / HALVES;
  static constexpr int LANE_K = 2, STEP = 4 * LANES, SLOTS = 2 + HALVES;
  static constexpr int SLOT_BYTES = R * STEP * 4, SUM_BYTES = 0;
  using Chunk = TallSkinnyChunk<NR, COLUMN_MAJOR>;
  static constexpr int step_k(int) { return STEP; }
  static_assert(SLOTS - 1 <= Chunk::KC / STEP, "a chunk arrives before the step that it is multiplied with");
  static_assert(2 * Chunk::bytes(Chunk::KC) + THREADS / 32 * SLOTS * SLOT_BYTES <= MOST_SHARED_BYTES,
                "two chunks of B and the rings of all warps fit a block's shared memory");

  static __device__ __forceinline__ void multiply(float (&acc)[R * NC], uint32_t a, uint32_t b) {
#pragma unroll
    for (int pair = 0; pair < STEP / 2; pair += LANES) {
      float x[2][NC];
      Chunk::load_pair(x, b + pair * Chunk::PAIR);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const float2 v = ptx::load2(a + (r * STEP + 2 * pair) * 4);
#pragma unroll
        for (int c = 0; c < NC; ++c) acc[r * NC + c] = fmaf(v.x, x[0][c], acc[r * NC + c]);
#pragma unroll
        for (int c = 0; c < NC; ++c) acc[r * NC + c] = fmaf(v.y, x[1][c], acc[r * NC + c]);
      }
    }
  }
};

template <int NR, bool WIDE>
void tall_skinny_rows(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  p.b.cs == 1 ? tall_skinny_lanes<TallSkinnyRows<NR, false, WIDE>>(p, plan, ctx)
              : tall_skinny_lanes<TallSkinnyRows<NR, true, WIDE>>(p, plan, ctx);
}

}  // namespace fl
