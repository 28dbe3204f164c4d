// A warp per row as in sgemv_01_warp_per_row.cu, with 16-byte loads: a quarter of the load instructions, four times the
// bytes in flight.
//
// 32-byte sectors, bytes used per warp (rows starting on a sector):
//   reads   100 %: 512 neighbouring bytes of A per load; a row of 128 elements is one load
//   writes   50 %: one y of each of four short rows, 16 bytes; 12.5 % for a row at a time
// Bound: memory from 128 columns on. Shorter rows leave lanes idle: sgemv_04_rows_per_warp_vec4.cu is for them.
//
// Up to three elements at the end of a row are read one by one: nothing past the row is touched. A may be in 16 bits
// (T), of which four elements are a load as well.
#include "cuda/kernels/common/gemv_columns.cuh"

namespace fl {
namespace {

// R rows at a time, U steps of each in flight, W warps to a row. X4: x is read as float4 too.
template <int R, int U, int W, bool X4, class T>
__global__ void __launch_bounds__(W == 1 ? 256 : 32 * W, W == 1 ? BLOCKS_PER_SM : 1)
    warp_per_row_vec4_kernel(SgemvArgs p, RowGrid grid) {
  static_assert(W == 1 || (W == 32 && R == 1), "a shared row is finished by one lane per warp");
  constexpr int STEP = 4 * 32 * W;
  const unsigned lane = threadIdx.x % 32, first = 4 * (threadIdx.x % (STEP / 4));
  RowBlock at = grid.block(p);
  if constexpr (W == 1) {
    at.row += threadIdx.x / 32 * R;
    if (at.row >= p.m) return;
  }

  const LaneRows<32, R, T> rows(p, at, lane);
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
      for (int r = 0; r < R; ++r) a_frag[u][r] = load4(rows.a[r] + j + skip);
    }
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
      for (int r = 0; r < R; ++r) acc[r] = u * STEP + 4 <= here ? dot4(a_frag[u][r], x_frag[u], acc[r]) : acc[r];
  }
  add_tail(p, at, rows, threadIdx.x % (STEP / 4), acc);
  if constexpr (W == 1) finish_rows(p, at, rows, acc, lane);
  else finish_shared_row(p, at, rows, acc, lane);
}

template <int R, int U, bool X4, class T>
void launch(const SgemvArgs& p, const Context& ctx) {
  const int warps = warps_per_block(p, R);
  const RowGrid grid(p, warps * R);
  warp_per_row_vec4_kernel<R, U, 1, X4, T><<<grid.blocks(), 32 * warps, 0, stream(ctx)>>>(p, grid);
}

template <bool X4, class T>
void launch_rows(const SgemvArgs& p, const Context& ctx) {
  if (p.n <= 256) return launch<4, 1, X4, T>(p, ctx);
  if (!few_long_rows(p, ctx)) return launch<1, 4, X4, T>(p, ctx);
  const RowGrid grid(p, 1);
  warp_per_row_vec4_kernel<1, 4, 32, X4, T><<<grid.blocks(), 1024, 0, stream(ctx)>>>(p, grid);
}

}  // namespace

void sgemv_warp_per_row_vec4(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs != 1) return gemv_columns<4>(p, ctx);
  with_type(p.stored[0], [&](auto number) {
    using T = decltype(number);
    x_is_vector(p) ? launch_rows<true, T>(p, ctx) : launch_rows<false, T>(p, ctx);
  });
}

}  // namespace fl
