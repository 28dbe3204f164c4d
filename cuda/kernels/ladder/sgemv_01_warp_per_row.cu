// A warp per row: lanes stride the columns, and a shuffle reduction ends the row.
//
// 32-byte sectors, bytes used per warp (rows starting on a sector):
//   reads   100 %: 128 neighbouring bytes of A per load; below 32 columns lanes idle, at N = 16 half of them
//   writes   50 %: one y of each of four short rows, 16 bytes; 12.5 % for a row at a time
// Bound: with rows of about 32 elements by latency and by the instructions of the reduction, with long rows by memory:
// 4-byte loads keep only 512 bytes per warp in flight.
//
// Up to 64 columns a warp takes four rows at once, so that four loads are under way before the first sum; above, four
// steps of one row. Few and very long rows are shared by the 32 warps of a block each: one warp cannot keep enough
// bytes in flight for a multiprocessor.
#include "cuda/kernels/common/gemv_columns.cuh"

namespace fl {
namespace {

// R rows at a time, U steps of each in flight, W warps to a row.
template <int R, int U, int W>
__global__ void __launch_bounds__(W == 1 ? 256 : 32 * W, W == 1 ? BLOCKS_PER_SM : 1)
    warp_per_row_kernel(SgemvArgs p, RowGrid grid) {
  static_assert(W == 1 || (W == 32 && R == 1), "a shared row is finished by one lane per warp");
  constexpr int STEP = 32 * W;
  const unsigned lane = threadIdx.x % 32, first = threadIdx.x % STEP;
  RowBlock at = grid.block(p);
  if constexpr (W == 1) {
    at.row += threadIdx.x / 32 * R;
    if (at.row >= p.m) return;
  }

  const LaneRows<32, R> rows(p, at, lane);
  float acc[R] = {};
#pragma unroll 1
  for (int64_t j = first; j < p.n; j += U * STEP) {
    const unsigned here = at_most(p.n - j, U * STEP);
    const float* x = at.x + j * p.x.inc;
    float a_frag[U][R], x_frag[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const unsigned skip = u * STEP < here ? u * STEP : 0;
      x_frag[u] = __ldg(x + skip * p.x.inc);
#pragma unroll
      for (int r = 0; r < R; ++r) a_frag[u][r] = __ldg(rows.a[r] + j + skip);
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int r = 0; r < R; ++r) acc[r] = u * STEP < here ? fmaf(a_frag[u][r], x_frag[u], acc[r]) : acc[r];
  }
  if constexpr (W == 1) finish_rows(p, at, rows, acc, lane);
  else finish_shared_row(p, at, rows, acc, lane);
}

template <int R, int U>
void launch(const SgemvArgs& p, const Context& ctx) {
  const int warps = warps_per_block(p, R);
  const RowGrid grid(p, warps * R);
  warp_per_row_kernel<R, U, 1><<<grid.blocks(), 32 * warps, 0, stream(ctx)>>>(p, grid);
}

}  // namespace

void sgemv_warp_per_row(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs != 1) return gemv_columns<1>(p, ctx);
  if (p.n <= 64) return launch<4, 1>(p, ctx);
  if (!few_long_rows(p, ctx)) return launch<1, 4>(p, ctx);
  const RowGrid grid(p, 1);
  warp_per_row_kernel<1, 4, 32><<<grid.blocks(), 1024, 0, stream(ctx)>>>(p, grid);
}

}  // namespace fl
