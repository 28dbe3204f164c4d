// What tall_skinny_rows.cuh and tall_skinny_quads.cuh share: a warp owns R rows, its lanes stand side by side along k,
// in halves that take different columns, and keep the sums of all rows until the end, when they are added over the
// lanes.
#pragma once

#include "cuda/kernels/common/reduce.cuh"
#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_launch.cuh"

namespace fl {

// T::multiply(acc, a, b) adds the products of a lane's share of a step, T::LANE_K of k at a time.
template <class T>
__global__ void __launch_bounds__(most_threads<T>(code_for_sm90), 1)
    tall_skinny_lanes_kernel(const __grid_constant__ TallSkinnyArgs args) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int half = lane / T::LANES, place = lane % T::LANES;
  const SgemmArgs& p = args.p;
  const TallSkinnyBlock at = TallSkinnyBlock::of<T::Chunk::NR>(args, T::R * warps);
  const int64_t row = at.row + warp * T::R;
  const int rows = static_cast<int>(min(p.m - row, int64_t{T::R}));
  const int count = static_cast<int>(at.count);
  const float* start = p.a.data + at.batch * p.a.bs + row * p.a.rs + at.k;
  TallSkinnyCopy<T::R, T::STEP> copy(start, p.a.rs, T::STEP, args.a_by16, lane);
  const uint32_t a_lane = place * T::LANE_K * 4, b_lane = T::Chunk::place(T::LANE_K * place, half * T::NC);
  pdl_wait();

  float acc[T::R * T::NC] = {};
  walk_k<T>(
      args, at, ptx::shared_address(memory), (count + T::STEP - 1) / T::STEP, T::Chunk::KC / T::STEP,
      T::Chunk::place(T::STEP, 0),
      [&](int step, uint32_t to) {
        if (rows > 0) copy.step(to, rows, count - step * T::STEP);
      },
      [&](uint32_t a, uint32_t b) {
        if (rows > 0) T::multiply(acc, a + a_lane, b + b_lane);
      });

  pdl_launch_next();  // earlier, the next kernel's blocks would land unevenly
  using Sum = GroupSum<T::LANES, T::R * T::NC>;
  sum_over_group<T::LANES, T::R * T::NC>(acc, lane);
  if (place % Sum::spread != 0) return;
#pragma unroll
  for (int i = 0; i < Sum::kept; ++i) {
    const int sum = place / Sum::spread * Sum::kept + i;
    put(args, at, row + sum / T::NC, half * T::NC + sum % T::NC, acc[i]);
  }
#else
  not_for_this_target();
#endif
}

template <class T>
void tall_skinny_lanes(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  launch_tall_skinny<T, tall_skinny_lanes_kernel<T>>(p, plan, ctx);
}

}  // namespace fl
