// SGEMV on contiguous long rows: a block of 256 threads to a row, of 1024 where rows are few, and where that leaves
// multiprocessors without work a cluster of blocks, whose first one adds up what the others write into its memory.
//
// 32-byte sectors: reads 100 %, of rows that start on a sector. x is read once per row, from L1 or L2. Bound: memory.
// Four loads of 16 bytes are in flight per thread, 128 KiB per multiprocessor.
//
// Lost in a prototype, at 16384 x 16384: two, four and eight rows per block to read x less often (by 0.5 to 4 %); a
// warp per row (2 %; here 3 to 5 %); x kept in registers (2 %); bulk copies into a ring in shared memory (1 to 2 %).
#include "cuda/kernels/common/l2_residency.cuh"
#include "cuda/kernels/sgemv/gemv_other_order.cuh"
#include "cuda/kernels/sgemv/gemv_row_sums.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr int U = ROW_ELEMENTS / 4;  // pieces of a row in flight, 16 bytes each

// U pieces of a row and of x, `step` elements apart. Not ALL: only `here` elements are left. Past the last one the
// first of the step is read again and not added: a condition on a load makes the compiler wait for one before it issues
// the next.
template <bool ALL, class T, class Load>
__device__ __forceinline__ float add_step(float acc, const T* a, const float* x, unsigned step, unsigned here,
                                          const Load& load) {
  float4 a_frag[U], x_frag[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const unsigned skip = ALL || u * step + 4 <= here ? u * step : 0;
    a_frag[u] = load(a + skip);
    x_frag[u] = load_x4<true>(x + skip, 1);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) acc = ALL || u * step + 4 <= here ? dot4(a_frag[u], x_frag[u], acc) : acc;
  return acc;
}

template <class T, class Load>
__device__ __forceinline__ float dot(const SgemvArgs& p, const T* a, const float* x, int64_t j, unsigned step,
                                     const Load& load) {
  const unsigned whole = U * step;
  float acc = 0.0f;
#pragma unroll 1
  for (; j + whole - step + 4 <= p.n; j += whole) acc = add_step<true>(acc, a + j, x + j, step, 0, load);
  if (j + 4 <= p.n) acc = add_step<false>(acc, a + j, x + j, step, at_most(p.n - j, whole), load);
  return acc;
}

template <int THREADS, bool RESIDENT, class T>
__global__ void __launch_bounds__(THREADS, THREADS == 256 ? (code_for<86, 89, 120> ? 4 : 5) : 1)
    long_rows_kernel(SgemvArgs p, RowGrid grid, unsigned cluster, float fraction) {
#if __CUDA_ARCH__ >= 900
  if (cluster > 1) ptx::cluster_arrive_relaxed();
#endif
  pdl_wait();
  const unsigned rank = blockIdx.x % cluster, thread = rank * THREADS + threadIdx.x;
  const RowBlock at = grid.block(p, blockIdx.x / cluster);
  const T* a = place_of<T>(p.stored[0], at.a) + at.row * p.a.rs;
  float acc = dot(p, a, at.x, int64_t{4} * thread, 4 * cluster * THREADS, MatrixLoad<RESIDENT>(fraction));
  if (const int64_t j = p.n / 4 * 4 + thread; j < p.n) acc = fmaf(load1(a + j), __ldg(at.x + j), acc);
  acc = sum_over_cluster(sum_over_team<THREADS, THREADS>(acc), rank, cluster);
  if (thread == 0) store(p, at.y, at.row, acc);
}

template <int THREADS, class T, bool RESIDENT = false>
void launch_blocks(const SgemvArgs& p, const Context& ctx, float fraction = 0.0f) {
  const RowGrid grid(p, 1);
  const int cluster = has_clusters(launched<long_rows_kernel<THREADS, RESIDENT, T>>(), ctx)
                          ? blocks_per_row(p, ctx.sm_count, THREADS)
                          : 1;
  launch_kernel<long_rows_kernel<THREADS, RESIDENT, T>>(
      {.blocks = grid.blocks() * cluster, .threads = THREADS, .cluster = cluster}, ctx, p, grid, unsigned(cluster),
      fraction);
}

template <int THREADS>
void launch(const SgemvArgs& p, const Context& ctx) {
  const float fraction = l2_resident_fraction(p, ctx);
  if (fraction > 0.0f) return launch_blocks<THREADS, float, true>(p, ctx, fraction);
  with_type(p.stored[0], [&](auto number) { launch_blocks<THREADS, decltype(number)>(p, ctx); });
}

}  // namespace

void sgemv_long_rows(const SgemvArgs& p, const Context& ctx) {
  const bool vectors = aligned16(p.a);
  if (p.a.cs != 1) return vectors ? sgemv_warp_per_row_vec4(p, ctx) : sgemv_warp_per_row(p, ctx);
  if (!vectors || !x_is_vector(p)) return sgemv_any_rows(p, ctx);
  long_rows_threads(p, ctx.sm_count) == 1024 ? launch<1024>(p, ctx) : launch<256>(p, ctx);
}

}  // namespace fl
