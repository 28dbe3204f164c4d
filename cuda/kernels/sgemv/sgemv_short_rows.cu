// SGEMV on contiguous rows of up to 256 elements: everything that a lane reads is under way before its first product,
// and nothing loops. L lanes to a row, V float4 (or floats, where A is not aligned) of a row per lane, R rows per lane.
//
// 32-byte sectors, bytes used per warp (rows starting on a sector):
//   reads   100 %: at most 8 lanes to a row up to 128 elements, 128 neighbouring bytes of a row per load
//   writes  100 % up to 32 elements: the sums of 4 or 8 neighbouring rows in one store; a sector at least from 4 on
// Bound: latency while A fits L2 (one round trip to it, and the launch, which overlaps the end of the kernel before),
// then memory. No shared memory, no barrier.
//
// Past L2 rows of more than 64 elements take a warp each, four rows at a time. Below, eight lanes to a row are as fast
// at 128 elements (within 1 %) and twice as fast at 32; fewer or more lanes than the row has float4s lose 5 to 50 %.
#include "cuda/kernels/common/gemv_rows.cuh"
#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/common/l2_residency.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemv/gemv_other_order.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr int64_t l2_floats = 6 << 20;  // 24 MB of A: half of what L2 keeps of it

// What a lane holds of a row or of x. W: floats to a load; X4: x can be read like A.
template <int W, bool X4>
__device__ __forceinline__ auto read_x(const float* x, int64_t inc) {
  if constexpr (W == 4) return load_x4<X4>(x, inc);
  else return __ldg(x);
}
template <int W, class Load>
__device__ __forceinline__ auto read_a(const float* a, const Load& load) {
  if constexpr (W == 4) return load(a);
  else return __ldg(a);
}
__device__ __forceinline__ float add_product(float4 a, float4 x, float acc) { return dot4(a, x, acc); }
__device__ __forceinline__ float add_product(float a, float x, float acc) { return fmaf(a, x, acc); }

template <int W, int L, int V, int R, bool X4, bool RESIDENT>
__device__ __forceinline__ void short_rows_of_block(const SgemvArgs& p, const RowGrid& grid, unsigned block,
                                                    float fraction) {
  pdl_wait();
  const MatrixLoad<RESIDENT> load(fraction);
  const unsigned lane = threadIdx.x % 32, l = lane % L, n = static_cast<unsigned>(p.n);
  RowBlock at = grid.block(p, block);
  at.row += threadIdx.x / 32 * LaneRows<L, R>::PER_WARP;
  if (at.row >= p.m) return;

  using Fragment = decltype(read_a<W>(nullptr, load));
  const LaneRows<L, R> rows(p, at, lane);
  Fragment a_frag[R][V], x_frag[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const unsigned j = W * (v * L + l);
    const bool exists = j + W <= n;
#pragma unroll
    for (int r = 0; r < R; ++r) a_frag[r][v] = exists ? read_a<W>(rows.a[r] + j, load) : Fragment{};
    x_frag[v] = exists ? read_x<W, X4>(at.x + j * p.x.inc, p.x.inc) : Fragment{};
  }
  float acc[R] = {};
  for (unsigned t = l; W > 1 && t < n % 4; t += L) add_tail(p, at, rows, t, acc);
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int v = 0; v < V; ++v) acc[r] = add_product(a_frag[r][v], x_frag[v], acc[r]);
  pdl_launch_next();
  __syncwarp();
  finish_rows(p, at, rows, acc, lane);
}

template <int W>
constexpr int least_blocks = W == 4 ? 0 : 4;  // on a multiprocessor

template <int W, int L, int V, int R, bool X4, bool RESIDENT>
__global__ void __launch_bounds__(256, least_blocks<W>) short_rows_kernel(SgemvArgs p, RowGrid grid, float fraction) {
  short_rows_of_block<W, L, V, R, X4, RESIDENT>(p, grid, blockIdx.x, fraction);
}

template <int W, int L, int V, int R, bool X4, bool RESIDENT = false>
void launch(const SgemvArgs& p, const Context& ctx, float fraction = 0.0f) {
  static_assert(W * L * V <= 256, "longer rows are not this kernel's");
  constexpr int ROWS = LaneRows<L, R>::PER_WARP;
  const int warps = ctx.group ? 8 : warps_per_block(p, ROWS);
  const RowGrid grid(p, warps * ROWS);
  const LaunchShape shape{grid.blocks(), 32 * warps};
  constexpr auto body = short_rows_of_block<W, L, V, R, X4, false>;
  if (keep<group_kernel<body, 256, least_blocks<W>, RowGrid, SgemvArgs, 0>>(shape, ctx, p, grid)) return;
  launch_kernel<short_rows_kernel<W, L, V, R, X4, RESIDENT>>(shape, ctx, p, grid, fraction);
}

template <int L, int V, int R, bool X4>
void launch_large(const SgemvArgs& p, const Context& ctx) {
  const float fraction = X4 ? l2_resident_fraction(p, ctx) : 0.0f;
  fraction > 0.0f ? launch<4, L, V, R, X4, X4>(p, ctx, fraction) : launch<4, L, V, R, X4>(p, ctx);
}

// Many rows: more of them to a warp, which costs a tenth of a microsecond where the device is not full.
template <bool X4>
void launch_vectors(const SgemvArgs& p, const Context& ctx) {
  const bool in_l2 = p.m * p.n * p.batch <= l2_floats, many = p.m * p.batch > 32768;
  if (p.n <= 8) return launch<4, 2, 1, 2, X4>(p, ctx);
  if (p.n <= 16) return many ? launch<4, 4, 1, 4, X4>(p, ctx) : launch<4, 4, 1, 1, X4>(p, ctx);
  if (p.n <= 32) return many ? launch<4, 8, 1, 4, X4>(p, ctx) : launch<4, 8, 1, 2, X4>(p, ctx);
  if (p.n <= 64) return launch<4, 8, 2, 1, X4>(p, ctx);
  if (p.n <= 128) return in_l2 ? launch<4, 8, 4, 1, X4>(p, ctx) : launch_large<32, 1, 4, X4>(p, ctx);
  launch_large<32, 2, 2, X4>(p, ctx);
}

void launch_scalars(const SgemvArgs& p, const Context& ctx) {
  if (p.n <= 8) return launch<1, 4, 2, 4, false>(p, ctx);
  if (p.n <= 16) return launch<1, 8, 2, 4, false>(p, ctx);
  if (p.n <= 32) return launch<1, 8, 4, 2, false>(p, ctx);
  if (p.n <= 64) return launch<1, 16, 4, 2, false>(p, ctx);
  if (p.n <= 128) return launch<1, 32, 4, 2, false>(p, ctx);
  launch<1, 32, 8, 1, false>(p, ctx);
}

}  // namespace

void sgemv_short_rows(const SgemvArgs& p, const Context& ctx) {
  const bool vectors = aligned16(p.a);
  if (p.a.cs != 1) return vectors ? sgemv_warp_per_row_vec4(p, ctx) : sgemv_warp_per_row(p, ctx);
  if (p.n > 256) return sgemv_long_rows(p, ctx);
  if (!vectors) return launch_scalars(p, ctx);
  x_is_vector(p) ? launch_vectors<true>(p, ctx) : launch_vectors<false>(p, ctx);
}

}  // namespace fl
