// SGEMV on a matrix whose columns are contiguous (a.rs == 1): what y = A^T x becomes when A is row-major. The same
// problem as in the row kernels, but now neighbouring outputs lie beside each other in memory, so lanes go across the
// outputs and the reduction runs down the block.
//
// A block owns V * LC neighbouring outputs. LC lanes of a warp read V floats each, the other groups of LC lanes and the
// other warps take further columns, and four or eight columns per thread are in flight. Partial sums meet in a fixed
// order: lanes by shuffles, warps through shared memory in ascending order. No atomics, no workspace, one launch.
//
// 32-byte sectors: reads 100 % if the columns start on a sector (V * LC is at least 8 floats), writes 100 %.
// Bound: memory while there are enough outputs to give every multiprocessor a block. With few outputs and a long
// reduction a block is made as narrow as a sector allows, and the limit is then what m / 8 multiprocessors can read.
#pragma once

#include "cuda/kernels/common/gemv_rows.cuh"

namespace fl {
namespace columns {

template <int V>
constexpr int in_flight = V == 1 ? 8 : 4;

template <int V, bool FULL, class T>
__device__ __forceinline__ void load(float (&frag)[V], const T* from, int64_t exist) {
  if constexpr (V == 4 && FULL) {
    const float4 v = load4(from);
    frag[0] = v.x, frag[1] = v.y, frag[2] = v.z, frag[3] = v.w;
  } else {
#pragma unroll
    for (int e = 0; e < V; ++e) frag[e] = FULL || e < exist ? load1(from + e) : 0.0f;
  }
}

// Adds to acc what one thread sees: columns j, j + step, ... below `end` of V outputs at a. Only a block across the end
// of y is not FULL and looks at how many outputs `exist`: it reads element by element. Past the last column the first
// of the step is read again and not added: see LaneRows.
template <int V, bool FULL, int U = in_flight<V>, class T>
__device__ __forceinline__ void accumulate(float (&acc)[V], const SgemvArgs& p, const T* a, const float* x, int64_t j,
                                           unsigned step, int64_t end, int64_t exist) {
#pragma unroll 1
  for (int64_t column = j; column < end; column += U * step) {
    const unsigned here = at_most(end - column, U * step);
    const T* from = a + column * p.a.cs;
    const float* x_from = x + column * p.x.inc;
    float a_frag[U][V], x_frag[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t skip = u * step < here ? u * step : 0;
      load<V, FULL>(a_frag[u], from + skip * p.a.cs, exist);
      x_frag[u] = __ldg(x_from + skip * p.x.inc);
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int e = 0; e < V; ++e) acc[e] = u * step < here ? fmaf(a_frag[u][e], x_frag[u], acc[e]) : acc[e];
  }
}

template <int V, int LC>
__global__ void __launch_bounds__(1024) gemv_columns_kernel(SgemvArgs p, RowGrid grid) {
  constexpr int OUTPUTS = V * LC, DOWN = 32 / LC;
  __shared__ float partial[32][OUTPUTS];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const RowBlock at = grid.block(p);
  const int64_t output = at.row + lane % LC * V;
  const unsigned j = warp * DOWN + lane / LC, step = warps * DOWN;
  float acc[V] = {};
  if (at.row + OUTPUTS <= p.m) accumulate<V, true>(acc, p, at.a + output, at.x, j, step, p.n, V);
  else accumulate<V, false>(acc, p, at.a + output, at.x, j, step, p.n, p.m - output);

#pragma unroll
  for (int e = 0; e < V; ++e) {
#pragma unroll
    for (int offset = 16; offset >= LC; offset /= 2) acc[e] += __shfl_xor_sync(0xffffffffu, acc[e], offset);
    if (lane < LC) partial[warp][lane * V + e] = acc[e];
  }
  __syncthreads();
  for (unsigned c = threadIdx.x; c < OUTPUTS && at.row + c < p.m; c += blockDim.x) {
    float sum = 0.0f;
#pragma unroll 8
    for (unsigned w = 0; w < warps; ++w) sum += partial[w][c];
    store(p, at.y, at.row + c, sum);
  }
}

template <int V, int LC>
void launch(const SgemvArgs& p, const Context& ctx) {
  // As many warps as have at least one full set of loads to do.
  const int64_t wanted = ceil_div(p.n, in_flight<V> * (32 / LC));
  const int warps = wanted < 1 ? 1 : (wanted > 32 ? 32 : static_cast<int>(wanted));
  const RowGrid grid(p, V * LC);
  gemv_columns_kernel<V, LC><<<grid.blocks(), 32 * warps, 0, stream(ctx)>>>(p, grid);
}

}  // namespace columns

// V is 4 if A's columns may be read as float4. The widest block that still fills three quarters of the device. This
// decides the order of a sum by the number of multiprocessors: bits may differ between devices that differ in it.
template <int V>
void gemv_columns(const SgemvArgs& p, const Context& ctx) {
  const auto fills = [&](int outputs) { return 4 * ceil_div(p.m, outputs) * p.batch >= 3 * int64_t(ctx.sm_count); };
  if (fills(V * 32)) return columns::launch<V, 32>(p, ctx);
  if constexpr (V > 1) {
    if (fills(V * 8)) return columns::launch<V, 8>(p, ctx);
  }
  columns::launch<V, 8 / V>(p, ctx);
}

}  // namespace fl
