// Narrow products whose long operand is contiguous along the outputs: C[m,n] = A[m,k] B[k,n], columns of A contiguous.
//
// A lane has V outputs of a block, 32 apart, and all columns; the warps take k by turns, and add up in shared memory at
// the end. A is read by 4-byte loads, so that it may begin anywhere: a warp's are neighbours. Eight loads of
// each lane are under way while eight others are multiplied; the first sixteen before B is there.
#pragma once

#include <algorithm>

#include "cuda/kernels/sgemm_narrow/narrow.cuh"

namespace fl {

template <int FOURS, int V>
struct NarrowColumns {
  static constexpr int WARPS = NARROW_WARPS / V, THREADS = 32 * WARPS;
  static constexpr int U = 8 / V, STEP = WARPS * U;  // k in flight, and of the block
  using Right = NarrowRight<FOURS, THREADS>;
  static_assert(NARROW_UNIT % STEP == 0, "zeros follow B up to the end of a step");
  const float* next[V];
  int64_t stride;  // to the next k of the warp
  int left;        // of them, those in flight not counted; less than none past the end, where the last is read again
  float acc[V][Right::COLUMNS] = {};

  __device__ __forceinline__ void fetch(float (&a)[U][V]) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        a[u][v] = __ldg(next[v]);
        if (u + 1 < left) next[v] += stride;
      }
    }
    left -= U;
  }

  // ALL: all k of the step exist, else the first `exist`.
  template <bool ALL>
  __device__ __forceinline__ void multiply(const float (&a)[U][V], const float4* right, int exist) {
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int f = 0; f < FOURS; ++f) {
        const float4 x = right[f * Right::KC + u * WARPS];
#pragma unroll
        for (int v = 0; v < V; ++v) add_four(acc[v] + 4 * f, ALL || u < exist ? a[u][v] : 0.0f, x);
      }
  }
  __device__ __forceinline__ void multiply(const float (&a)[U][V], const float4* right, int exist) {
    exist >= U ? multiply<true>(a, right, exist) : multiply<false>(a, right, exist);
  }
};

template <int FOURS, int V>
__device__ __forceinline__ void narrow_columns_of_block(const SgemmArgs& p, const NarrowPlan& plan, unsigned block,
                                                        float* workspace) {
  using Work = NarrowColumns<FOURS, V>;
  constexpr int COLUMNS = Work::Right::COLUMNS, STEP = Work::STEP, U = Work::U, WARPS = Work::WARPS;
  constexpr int PITCH = 32 * V + 1, WARP = PITCH * COLUMNS;  // of sums
  constexpr int FLOATS = std::max(4 * NARROW_FOURS, WARPS * WARP);
  __shared__ float4 memory[(FLOATS + 3) / 4];
  const NarrowBlock at(p, plan, block);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Work work;
  work.stride = WARPS * p.a.cs, work.left = (at.count - warp + WARPS - 1) / WARPS;
#pragma unroll
  for (int v = 0; v < V; ++v)
    work.next[v] = p.a.data + at.batch * p.a.bs + (at.k + warp) * p.a.cs + min(at.row + lane + 32 * v, p.m - 1);
  pdl_wait();
  float even[U][V], odd[U][V];
  int left = work.left;
  if (left > 0) work.fetch(even), work.fetch(odd);
  Work::Right::load(memory, p, at);
  __syncthreads();
  const float4* right = memory + warp;
#pragma unroll 1
  for (; left > 0; left -= 2 * U, right += 2 * STEP) {
    work.multiply(even, right, left);
    if (left > 2 * U) work.fetch(even);
    if (left > U) work.multiply(odd, right + STEP, left - U);
    if (left > 3 * U) work.fetch(odd);
  }
  pdl_launch_next();
  __syncthreads();
  float* parts = reinterpret_cast<float*>(memory);
#pragma unroll
  for (int v = 0; v < V; ++v)
#pragma unroll
    for (int col = 0; col < COLUMNS; ++col) parts[warp * WARP + col * PITCH + 32 * v + lane] = work.acc[v][col];
  __syncthreads();
  store_narrow<COLUMNS, Work::THREADS>(p, plan, at, workspace, 32 * V, WARPS, [&](int range, int row, int col) {
    return parts[range * WARP + col * PITCH + row];
  });
}

template <int FOURS, int V>
constexpr int narrow_columns_blocks = V == 1      ? 2
                                      : FOURS > 2 ? 3
                                                  : 4;  // on a multiprocessor

template <int FOURS, int V>
__global__ void __launch_bounds__(NarrowColumns<FOURS, V>::THREADS, narrow_columns_blocks<FOURS, V>)
    narrow_columns_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ NarrowPlan plan,
                          float* workspace) {
  narrow_columns_of_block<FOURS, V>(p, plan, blockIdx.x, workspace);
}

template <int FOURS, int V>
void launch_narrow_columns(const SgemmArgs& p, const NarrowPlan& plan, const Context& ctx) {
  launch_narrow<narrow_columns_kernel<FOURS, V>, narrow_columns_of_block<FOURS, V>, NarrowColumns<FOURS, V>::THREADS,
                narrow_columns_blocks<FOURS, V>>(p, plan, ctx);
}
template <int FOURS>
void narrow_columns(const SgemmArgs& p, const NarrowPlan& plan, const Context& ctx) {
  plan.block_rows == 64 ? launch_narrow_columns<FOURS, 2>(p, plan, ctx) : launch_narrow_columns<FOURS, 1>(p, plan, ctx);
}

}  // namespace fl
