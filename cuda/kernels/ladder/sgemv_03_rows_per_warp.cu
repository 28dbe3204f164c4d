// Several short rows per warp: L lanes to a row, L the power of two from the number of columns up, so that a warp reads
// 32 / L rows with one load and the reduction ends after log2(L) steps.
//
// 32-byte sectors, bytes used per warp (N = L, rows beside each other in memory):
//   reads   100 %: 128 neighbouring bytes of A per load; with N between two powers of two some lanes idle (7 of 16 at
//           N = 9), and a sector that two rows share comes from L1 the second time
//   writes  100 % up to N = 16: the sums of 128 / L neighbouring rows, 8 or more, in one store
// Bound: latency up to a few MB of A, then memory. Four loads per lane are in flight; no shared memory, no barrier.
#include "cuda/kernels/common/gemv_columns.cuh"

namespace fl {
namespace {

constexpr int R = 4;  // rows of a lane group at once

template <int L>
__global__ void __launch_bounds__(256, BLOCKS_PER_SM) rows_per_warp_kernel(SgemvArgs p, RowGrid grid) {
  const unsigned lane = threadIdx.x % 32, first = lane % L;
  RowBlock at = grid.block(p);
  at.row += threadIdx.x / 32 * LaneRows<L, R>::PER_WARP;
  if (at.row >= p.m) return;

  const LaneRows<L, R> rows(p, at, lane);
  float acc[R] = {};
#pragma unroll 1
  for (int64_t j = first; j < p.n; j += L) {
    float a_frag[R];
#pragma unroll
    for (int r = 0; r < R; ++r) a_frag[r] = __ldg(rows.a[r] + j);
    const float x_frag = __ldg(at.x + j * p.x.inc);
#pragma unroll
    for (int r = 0; r < R; ++r) acc[r] = fmaf(a_frag[r], x_frag, acc[r]);
  }
  finish_rows(p, at, rows, acc, lane);
}

template <int L>
void launch(const SgemvArgs& p, const Context& ctx) {
  constexpr int ROWS = LaneRows<L, R>::PER_WARP;
  const int warps = warps_per_block(p, ROWS);
  const RowGrid grid(p, warps * ROWS);
  rows_per_warp_kernel<L><<<grid.blocks(), 32 * warps, 0, stream(ctx)>>>(p, grid);
}

}  // namespace

void sgemv_rows_per_warp(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs != 1) return gemv_columns<1>(p, ctx);
  if (p.n <= 1) return launch<1>(p, ctx);
  if (p.n <= 2) return launch<2>(p, ctx);
  if (p.n <= 4) return launch<4>(p, ctx);
  if (p.n <= 8) return launch<8>(p, ctx);
  if (p.n <= 16) return launch<16>(p, ctx);
  launch<32>(p, ctx);
}

}  // namespace fl
