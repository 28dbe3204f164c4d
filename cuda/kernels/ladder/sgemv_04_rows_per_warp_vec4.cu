// Several rows per warp with 16-byte loads: at N = 32 eight lanes hold a row and a warp reads four rows with one load,
// where a warp per row (sgemv_01_warp_per_row.cu) reads one and has five steps to sum it instead of three.
//
// 32-byte sectors, bytes used per warp (rows starting on a sector):
//   reads   100 %: eight lanes cover 128 neighbouring bytes of a row
//   writes  100 % up to N = 32: the sums of 8 or 16 neighbouring rows in one store; above, of four rows: 50 %
// Bound: latency while A fits L2, then memory. From N = 128 on a warp per row does as well.
//
// Two rows of up to 32 elements are in flight per lane, or four steps of a longer one. Up to three elements at the end
// of a row are read one by one: nothing past the row is touched.
#include "cuda/kernels/common/gemv_columns.cuh"

namespace fl {
namespace {

// L lanes to a row, R rows of a lane group at once, U steps of each in flight. X4: x is read as float4 too.
template <int L, int R, int U, bool X4>
__global__ void __launch_bounds__(256, BLOCKS_PER_SM) rows_per_warp_vec4_kernel(SgemvArgs p, RowGrid grid) {
  constexpr int STEP = 4 * L;
  const unsigned lane = threadIdx.x % 32, first = 4 * (lane % L);
  RowBlock at = grid.block(p);
  at.row += threadIdx.x / 32 * LaneRows<L, R>::PER_WARP;
  if (at.row >= p.m) return;

  const LaneRows<L, R> rows(p, at, lane);
  float acc[R] = {};
#pragma unroll 1
  for (int64_t j = first; j + 4 <= p.n; j += U * STEP) {
    const unsigned here = at_most(p.n - j, U * STEP);
    const float* x = at.x + j * p.x.inc;
    float4 a_frag[U][R], x_frag[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const unsigned skip = u * STEP + 4 <= here ? u * STEP : 0;
      x_frag[u] = load_x4<X4>(x + skip * p.x.inc, p.x.inc);
#pragma unroll
      for (int r = 0; r < R; ++r) a_frag[u][r] = __ldcg(reinterpret_cast<const float4*>(rows.a[r] + j + skip));
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int r = 0; r < R; ++r) acc[r] = u * STEP + 4 <= here ? dot4(a_frag[u][r], x_frag[u], acc[r]) : acc[r];
  }
  add_tail(p, at, rows, lane % L, acc);
  finish_rows(p, at, rows, acc, lane);
}

template <int L, int R, int U, bool X4>
void launch(const SgemvArgs& p, const Context& ctx) {
  static_assert(L >= 4, "the up to three last elements of a row are one lane's work each");
  constexpr int ROWS = LaneRows<L, R>::PER_WARP;
  const int warps = warps_per_block(p, ROWS);
  const RowGrid grid(p, warps * ROWS);
  rows_per_warp_vec4_kernel<L, R, U, X4><<<grid.blocks(), 32 * warps, 0, stream(ctx)>>>(p, grid);
}

template <bool X4>
void launch_rows(const SgemvArgs& p, const Context& ctx) {
  if (p.n <= 16) return launch<4, 2, 1, X4>(p, ctx);
  if (p.n <= 32) return launch<8, 2, 1, X4>(p, ctx);
  launch<8, 1, 4, X4>(p, ctx);
}

}  // namespace

void sgemv_rows_per_warp_vec4(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs != 1) return gemv_columns<4>(p, ctx);
  x_is_vector(p) ? launch_rows<true>(p, ctx) : launch_rows<false>(p, ctx);
}

}  // namespace fl
