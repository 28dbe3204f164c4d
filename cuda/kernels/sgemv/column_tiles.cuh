// What a block does of y = A x on contiguous columns (a.rs == 1) in the kernels that put several blocks on the same
// outputs (split-K): a tile of V * LC neighbouring outputs, some of the columns. LC threads read V floats each of a
// column, the other THREADS / LC groups take further columns, U of them in flight per thread.
//
// The sums meet in a fixed order: lanes of a warp by shuffles, warps through shared memory, Q neighbouring lanes to an
// output. A row of partial sums is 32 / Q words longer than it need be: what a warp reads at a time then lies in 32
// different banks.
#pragma once

#include "cuda/kernels/common/gemv_columns.cuh"
#include "cuda/kernels/common/l2_residency.cuh"
#include "cuda/kernels/common/launch.cuh"

namespace fl {

// On a multiprocessor, as many as have the registers they need.
template <int THREADS>
constexpr int most_columns_blocks = code_for<120> && THREADS < 1024 ? 768 / THREADS : 1024 / THREADS;

template <int V, int LC, int THREADS>
struct ColumnTile {
  static constexpr int OUTPUTS = V * LC, GROUPS = THREADS / LC;
  static constexpr int LANES = LC < 32 ? LC : 32, DOWN = 32 / LANES;  // of a warp: across the outputs, down the columns
  static constexpr int ACROSS = LC / LANES, WARP_ROWS = THREADS / 32 / ACROSS;

  static constexpr int at_least_1(int x) { return x < 1 ? 1 : x; }
  static constexpr int smaller(int x, int y) { return x < y ? x : y; }
  static constexpr int Q = smaller(smaller(8, WARP_ROWS), at_least_1(THREADS / OUTPUTS));
  static constexpr int PITCH = OUTPUTS + (Q > 1 ? 32 / Q : 0);
  static_assert(OUTPUTS * Q % 32 == 0, "whole warps add up: they shuffle");
  static_assert(WARP_ROWS % Q == 0, "each of the Q lanes of an output adds up as many rows of sums");
};

// Adds whole steps of U columns, for which nothing is asked, and returns the first column after them: 2 to 7 % faster
// at 64 to 134 MB than the loop that asks.
template <int V, int U, class T, class Load>
__device__ __forceinline__ int64_t accumulate_whole(float (&acc)[V], const SgemvArgs& p, const T* a, const float* x,
                                                    int64_t j, unsigned step, int64_t end, const Load& load) {
  const int64_t stride = step * p.a.cs, x_stride = step * p.x.inc;
  a += j * p.a.cs, x += j * p.x.inc;
#pragma unroll 1
  for (; j + (U - 1) * step < end; j += U * step, a += U * stride, x += U * x_stride) {
    float a_frag[U][V], x_frag[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if constexpr (V == 4) {
        const float4 v = load(a + u * stride);
        a_frag[u][0] = v.x, a_frag[u][1] = v.y, a_frag[u][2] = v.z, a_frag[u][3] = v.w;
      } else {
        a_frag[u][0] = load1(a + u * stride);
      }
      x_frag[u] = __ldg(x + u * x_stride);
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int e = 0; e < V; ++e) acc[e] = fmaf(a_frag[u][e], x_frag[u], acc[e]);
  }
  return j;
}

// What a thread reads: columns first, first + step, ... below end for the block's first group, and so on.
template <class T, int V, int LC, int U, class Load>
__device__ __forceinline__ void read_tile(float (&acc)[V], const SgemvArgs& p, const RowBlock& at, int64_t first,
                                          unsigned step, int64_t end, const Load& load) {
  int64_t j = first + threadIdx.x / LC;
  const int64_t output = at.row + threadIdx.x % LC * V;
  const T* a = place_of<T>(p.stored[0], at.a) + output;
  if (output + V <= p.m) {
    j = accumulate_whole<V, U>(acc, p, a, at.x, j, step, end, load);
    if (j < end) columns::accumulate<V, true, U>(acc, p, a, at.x, j, step, end, V);
  } else if (output < p.m) {
    columns::accumulate<V, false, U>(acc, p, a, at.x, j, step, end, p.m - output);
  }
}

// Calls consume(c, sum) once for each output c of the tile, in different threads; c may lie past the end of y.
template <int V, int LC, int THREADS, class Consume>
__device__ __forceinline__ void sum_tile(float (&acc)[V], const Consume& consume) {
  using S = ColumnTile<V, LC, THREADS>;
  using Sum = GroupSum<S::DOWN, V>;
  __shared__ float partial[S::WARP_ROWS][S::PITCH];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, down = lane / S::LANES;
  __syncwarp();
  sum_over_group<S::DOWN, V, S::LANES>(acc, lane);
  if (down % Sum::spread == 0) {
#pragma unroll
    for (int i = 0; i < Sum::kept; ++i)
      partial[warp / S::ACROSS][threadIdx.x % LC * V + down / Sum::spread * Sum::kept + i] = acc[i];
  }
  __syncthreads();
  for (unsigned t = threadIdx.x; t < S::OUTPUTS * S::Q; t += THREADS) {
    const unsigned c = t / S::Q, q = t % S::Q;
    float sum[1] = {0.0f};
#pragma unroll
    for (unsigned w = 0; w < S::WARP_ROWS; w += S::Q) sum[0] += partial[w + q][c];
    sum_over_group<S::Q, 1>(sum, lane);
    if (q == 0) consume(c, sum[0]);
  }
}

}  // namespace fl
