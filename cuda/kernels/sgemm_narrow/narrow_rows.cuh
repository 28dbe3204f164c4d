// Narrow products whose long operand is contiguous along k: C[m,n] = A[m,k] B[k,n], rows of A contiguous, four columns.
//
// A warp has four rows, its lanes stand side by side along k; where there would be too few blocks, several warps share
// the k of the same rows. A is read by 4-byte loads, so that rows may begin anywhere: a warp's are neighbours. Eight
// loads of each lane are under way while eight others are multiplied; the first sixteen before B is there. A number of
// B serves four FMAs. The sums of the lanes meet by shuffles, those of warps in shared memory.
#pragma once

#include "cuda/kernels/common/reduce.cuh"
#include "cuda/kernels/sgemm_narrow/narrow.cuh"

namespace fl {

struct NarrowRows {
  static constexpr int R = 4, U = 2;  // rows; steps of 32 k in flight
  static constexpr int THREADS = 32 * NARROW_WARPS;
  using Right = NarrowRight<1, THREADS>;
  const float* rows[R];
  int step, count;  // how far on the next 32 k of the warp are; k of the block
  float acc[R * Right::COLUMNS] = {};

  __device__ __forceinline__ void fetch(float (&a)[U][R], int k) const {
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int r = 0; r < R; ++r) a[u][r] = k + u * step < count ? __ldg(rows[r] + k + u * step) : 0.0f;
  }

  // `right` for this lane at the warp's k.
  __device__ __forceinline__ void multiply(const float (&a)[U][R], const float4* right, int k) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (k + u * step >= count) return;
      const float4 x = right[u * step];
#pragma unroll
      for (int r = 0; r < R; ++r) add_four(acc + 4 * r, a[u][r], x);
    }
  }
};

__device__ __forceinline__ void narrow_rows_of_block(const SgemmArgs& p, const NarrowPlan& plan, unsigned block,
                                                     float* workspace) {
  constexpr int R = NarrowRows::R, COLUMNS = NarrowRows::Right::COLUMNS, SUMS = R * COLUMNS;
  __shared__ float4 right[NARROW_FOURS];
  __shared__ float parts[NARROW_WARPS * SUMS];
  const NarrowBlock at(p, plan, block);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, ranges = plan.ranges;
  const int64_t row = at.row + warp / ranges * R;
  NarrowRows work;
  work.step = 32 * ranges, work.count = at.count;
#pragma unroll
  for (int r = 0; r < R; ++r) work.rows[r] = p.a.data + at.batch * p.a.bs + min(row + r, p.m - 1) * p.a.rs + at.k;
  const int first = warp % ranges * 32, together = NarrowRows::U * work.step;
  pdl_wait();
  float even[NarrowRows::U][R], odd[NarrowRows::U][R];
  work.fetch(even, first + lane);
  work.fetch(odd, first + lane + together);
  NarrowRows::Right::load(right, p, at);
  __syncthreads();
#pragma unroll 1
  for (int k = first; k < at.count; k += 2 * together) {
    work.multiply(even, right + k + lane, k);
    work.fetch(even, k + lane + 2 * together);
    work.multiply(odd, right + k + lane + together, k + together);
    work.fetch(odd, k + lane + 3 * together);
  }
  pdl_launch_next();
  using Sum = GroupSum<32, SUMS>;
  static_assert(Sum::kept == 1);
  __syncwarp();
  sum_over_group<32, SUMS>(work.acc, lane);
  if (lane % Sum::spread == 0) parts[warp * SUMS + lane / Sum::spread] = work.acc[0];
  __syncthreads();
  store_narrow<COLUMNS, NarrowRows::THREADS>(
      p, plan, at, workspace, plan.block_rows, ranges, [&](int range, int at_row, int col) {
        return parts[(at_row / R * ranges + range) * SUMS + at_row % R * COLUMNS + col];
      });
}

__global__ void __launch_bounds__(NarrowRows::THREADS, 2)
    narrow_rows_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ NarrowPlan plan, float* workspace) {
  narrow_rows_of_block(p, plan, blockIdx.x, workspace);
}

inline void narrow_rows(const SgemmArgs& p, const NarrowPlan& plan, const Context& ctx) {
  launch_narrow<narrow_rows_kernel, narrow_rows_of_block, NarrowRows::THREADS, 2>(p, plan, ctx);
}

}  // namespace fl
