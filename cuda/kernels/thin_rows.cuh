// Thin products whose long operand is contiguous along k: C[m,n] = A[m,k] B[k,n], n <= 16, rows of A contiguous.
//
// A warp owns 8 rows. Its lanes stand side by side along k and keep the sums of all rows and columns until the end,
// when they are added over the lanes. 16 columns do not fit: there two halves of a warp take 8 columns each of the same
// k, so that 256 FMAs of a lane need 32 reads of 8 or 16 bytes.
//
// B is read again by every block, mostly from L2: 128 rows to a block make that an eighth of A's bytes.
#pragma once

#include "reduce.cuh"
#include "thin_launch.cuh"

namespace fl {

template <int NR, bool TURNED, bool WIDE>
struct ThinRows {
  static constexpr int R = WIDE ? 16 : 8, THREADS = 4096 / R;
  static constexpr int HALVES = NR > 8 ? 2 : 1, LANES = 32 / HALVES, NC = NR / HALVES;
  static constexpr int STEP = 4 * LANES, SLOTS = 2 + HALVES, SLOT_BYTES = R * STEP * 4, SUM_BYTES = 0;
  using Chunk = ThinChunk<NR, TURNED>;
  static constexpr int step_k(int) { return STEP; }
  static_assert(SLOTS - 1 <= Chunk::KC / STEP, "a chunk arrives before the step that it is multiplied with");
  static_assert(2 * Chunk::bytes(Chunk::KC) + THREADS / 32 * SLOTS * SLOT_BYTES <= 232448);
};

template <int NR, bool TURNED, bool WIDE>
__global__ void __launch_bounds__((WIDE ? 256 : 512), 1) thin_rows_kernel(const __grid_constant__ ThinArgs args) {
#if __CUDA_ARCH__ >= 900
  using T = ThinRows<NR, TURNED, WIDE>;
  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int half = lane / T::LANES, place = lane % T::LANES;
  const SgemmArgs& p = args.p;
  const ThinBlock at = ThinBlock::of<NR>(args, T::R * warps);
  const int64_t row = at.row + warp * T::R;
  const int rows = static_cast<int>(min(p.m - row, int64_t{T::R}));
  const int count = static_cast<int>(at.count);
  ThinCopy<T::R, T::STEP> copy(p.a.data + at.batch * p.a.bs + row * p.a.rs + at.k, p.a.rs, T::STEP, args.a_by16, lane);
  const uint32_t a_lane = place * 8, b_lane = T::Chunk::place(2 * place, half * T::NC);
  ptx::grid_wait();

  float acc[T::R * T::NC] = {};
  walk_k<T>(
      args, at, ptx::shared_address(memory), (count + T::STEP - 1) / T::STEP, T::Chunk::KC / T::STEP,
      T::STEP / 2 * T::Chunk::PAIR,
      [&](int step, uint32_t to) {
        if (rows > 0) copy.step(to, rows, count - step * T::STEP);
      },
      [&](uint32_t a, uint32_t b) {
        if (rows <= 0) return;
#pragma unroll
        for (int pair = 0; pair < T::STEP / 2; pair += T::LANES) {
          float x[2][T::NC];
          T::Chunk::load_pair(x, b + b_lane + pair * T::Chunk::PAIR);
#pragma unroll
          for (int r = 0; r < T::R; ++r) {
            const float2 v = ptx::load2(a + a_lane + (r * T::STEP + 2 * pair) * 4);
#pragma unroll
            for (int c = 0; c < T::NC; ++c) acc[r * T::NC + c] = fmaf(v.x, x[0][c], acc[r * T::NC + c]);
#pragma unroll
            for (int c = 0; c < T::NC; ++c) acc[r * T::NC + c] = fmaf(v.y, x[1][c], acc[r * T::NC + c]);
          }
        }
      });

  ptx::grid_release();  // earlier, the next kernel's blocks would land unevenly
  using Sum = GroupSum<T::LANES, T::R * T::NC>;
  sum_over_group<T::LANES, T::R * T::NC>(acc, lane);
  if (place % Sum::spread != 0) return;
#pragma unroll
  for (int i = 0; i < Sum::kept; ++i) {
    const int sum = place / Sum::spread * Sum::kept + i;
    put(args, at, row + sum / T::NC, half * T::NC + sum % T::NC, acc[i]);
  }
#endif
}

template <int NR, bool WIDE>
void thin_rows(const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  if (p.b.cs == 1) return launch_thin<ThinRows<NR, false, WIDE>>(thin_rows_kernel<NR, false, WIDE>, p, plan, ctx);
  launch_thin<ThinRows<NR, true, WIDE>>(thin_rows_kernel<NR, true, WIDE>, p, plan, ctx);
}

}  // namespace fl
