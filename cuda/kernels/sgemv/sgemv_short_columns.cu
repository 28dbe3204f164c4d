// SGEMV on contiguous columns, few of them and many outputs: a thread to an output, or to four, which reads them column
// by column. Nothing is shared, no barrier: in the other column kernels most threads of a block would have no column
// (3 columns of 117384: 3.8 us there, 1.9 here).
//
// 32-byte sectors: reads 100 % of columns that start on one, writes 100 %. Bound: latency while A fits L2, up to
// sixteen columns at a time (205 x 22309: 5.1 us, 6.7 with eight); then memory, if there are outputs enough to fill the
// device with threads.
#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/sgemv/column_tiles.cuh"
#include "cuda/kernels/sgemv/gemv_other_order.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr int MOST_THREADS = 256, BLOCKS = 4;

// U columns in flight.
template <int V, int U>
__device__ __forceinline__ void short_columns_of_block(const SgemvArgs& p, const RowGrid& grid, unsigned block) {
  pdl_wait();
  const RowBlock at = grid.block(p, block);
  const int64_t output = at.row + threadIdx.x * V, rest = p.m - output;
  if (rest <= 0) return;
  const float* a = at.a + output;
  float acc[V] = {};
  if (rest >= V) {
    const int64_t j = accumulate_whole<V, U>(acc, p, a, at.x, 0, 1, p.n, MatrixLoad<false>(0.0f));
    if (j < p.n) columns::accumulate<V, true, U>(acc, p, a, at.x, j, 1, p.n, V);
  } else {
    columns::accumulate<V, false, U>(acc, p, a, at.x, 0, 1, p.n, rest);
  }
  pdl_launch_next();
#pragma unroll
  for (int e = 0; e < V; ++e)
    if (e < rest) store(p, at.y, output + e, acc[e]);
}

template <int V, int U>
__global__ void __launch_bounds__(MOST_THREADS, BLOCKS) short_columns_kernel(SgemvArgs p, RowGrid grid) {
  short_columns_of_block<V, U>(p, grid, blockIdx.x);
}

// Small blocks where there would be too few for every multiprocessor.
template <int V, int U>
void launch_short(const SgemvArgs& p, const Context& ctx) {
  int threads = MOST_THREADS;
  while (!ctx.group && threads > 64 && p.m * p.batch < 2 * int64_t(ctx.sm_count) * V * threads) threads /= 2;
  const RowGrid grid(p, V * threads);
  const LaunchShape shape{grid.blocks(), threads};
  if (!keep<group_kernel<short_columns_of_block<V, U>, MOST_THREADS, BLOCKS, RowGrid, SgemvArgs>>(shape, ctx, p, grid))
    launch_kernel<short_columns_kernel<V, U>>(shape, ctx, p, grid);
}

template <int V>
void launch_short(const SgemvArgs& p, const Context& ctx) {
  if (p.n <= 2) return launch_short<V, 2>(p, ctx);
  if (p.n <= 4) return launch_short<V, 4>(p, ctx);
  if constexpr (V == 1) {
    if (p.n > 32) return launch_short<V, 16>(p, ctx);
  }
  launch_short<V, 8>(p, ctx);
}

}  // namespace

void sgemv_short_columns(const SgemvArgs& p, const Context& ctx) {
  const bool vectors = aligned16(p.a);
  if (p.a.cs == 1) return vectors ? sgemv_warp_per_row_vec4(p, ctx) : sgemv_warp_per_row(p, ctx);
  vectors&& p.m* p.batch >= 128 * int64_t(ctx.sm_count) ? launch_short<4>(p, ctx) : launch_short<1>(p, ctx);
}

}  // namespace fl
