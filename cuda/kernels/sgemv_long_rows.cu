// SGEMV on contiguous long rows: a block of 256 threads to a row, of 1024 where rows are few, and where that leaves
// multiprocessors without work a cluster of blocks, whose first one adds up what the others write into its memory.
//
// 32-byte sectors: reads 100 %, of rows that start on a sector. x is read once per row, from L1 or L2. Bound: memory.
// Four loads of 16 bytes are in flight per thread (eight of 4 bytes where A is not aligned), 128 KiB per multiprocessor.
//
// Lost in a prototype, at 16384 x 16384: two, four and eight rows per block to read x less often (by 0.5 to 4 %); a warp
// per row (2 %; here 3 to 5 %); x kept in registers (2 %); bulk copies into a ring in shared memory (1 to 2 %).
#include "gemv_cuda_plan.h"
#include "gemv_other_order.cuh"
#include "gemv_rows.cuh"
#include "overlap.cuh"

namespace fl {
namespace {

constexpr int MAX_CLUSTER = 8;

template <int V>
constexpr int in_flight = V == 4 ? 4 : 8;

// U times V elements of a row and of x, `step` apart. Not ALL: only `here` elements are left. Past the last one the
// first of the step is read again and not added: a condition on a load makes the compiler wait for one before it issues
// the next.
template <int V, bool X4, bool ALL>
__device__ __forceinline__ float add_step(float acc, const float* a, const float* x, int64_t inc, unsigned step,
                                          unsigned here) {
  constexpr int U = in_flight<V>;
  float4 a_frag[U], x_frag[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const unsigned skip = ALL || u * step + V <= here ? u * step : 0;
    if constexpr (V == 4) {
      a_frag[u] = ptx::load4_once(a + skip);
      x_frag[u] = load_x4<X4>(x + skip * inc, inc);
    } else {
      a_frag[u].x = ptx::load_once(a + skip);
      x_frag[u].x = __ldg(x + skip * inc);
    }
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const float sum = V == 4 ? dot4(a_frag[u], x_frag[u], acc) : fmaf(a_frag[u].x, x_frag[u].x, acc);
    acc = ALL || u * step + V <= here ? sum : acc;
  }
  return acc;
}

template <int V, bool X4>
__device__ __forceinline__ float dot(const SgemvArgs& p, const float* a, const float* x, int64_t j, unsigned step) {
  const unsigned whole = in_flight<V> * step;
  float acc = 0.0f;
#pragma unroll 1
  for (; j + whole - step + V <= p.n; j += whole)
    acc = add_step<V, X4, true>(acc, a + j, x + j * p.x.inc, p.x.inc, step, 0);
  if (j + V <= p.n) acc = add_step<V, X4, false>(acc, a + j, x + j * p.x.inc, p.x.inc, step, at_most(p.n - j, whole));
  return acc;
}

// The sum over the block, in thread 0.
template <int THREADS>
__device__ __forceinline__ float sum_over_block(float acc) {
  __shared__ float partial[THREADS / 32];
  float v[1] = {acc};
  sum_over_group<32, 1>(v, threadIdx.x % 32);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v[0];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < THREADS / 32; ++w) sum += partial[w];
  return sum;
}

// The sum over the cluster, in thread 0 of its first block.
__device__ __forceinline__ float sum_over_cluster(float acc, unsigned rank, unsigned cluster) {
#if __CUDA_ARCH__ >= 900
  __shared__ float sums[MAX_CLUSTER];
  if (cluster == 1) return acc;
  ptx::cluster_wait();  // the first block has begun
  if (threadIdx.x == 0) ptx::store_cluster(ptx::address_in(0, ptx::shared_address(sums + rank)), acc);
  __syncwarp();
  ptx::cluster_arrive();
  ptx::cluster_wait();
  acc = 0.0f;
#pragma unroll
  for (unsigned r = 0; r < MAX_CLUSTER; ++r) acc += r < cluster ? sums[r] : 0.0f;
#endif
  return acc;
}

template <int THREADS, int V, bool X4>
__global__ void __launch_bounds__(THREADS, THREADS == 256 ? 5 : 1)
    long_rows_kernel(SgemvArgs p, RowGrid grid, unsigned cluster) {
#if __CUDA_ARCH__ >= 900
  if (cluster > 1) ptx::cluster_arrive_relaxed();
#endif
  wait_for_previous();
  const unsigned rank = blockIdx.x % cluster, thread = rank * THREADS + threadIdx.x;
  const RowBlock at = grid.block(p, blockIdx.x / cluster);
  const float* a = at.a + at.row * p.a.rs;
  float acc = dot<V, X4>(p, a, at.x, int64_t{V} * thread, V * cluster * THREADS);
  if (const int64_t j = p.n / V * V + thread; V > 1 && j < p.n)
    acc = fmaf(__ldg(a + j), __ldg(at.x + j * p.x.inc), acc);
  acc = sum_over_cluster(sum_over_block<THREADS>(acc), rank, cluster);
  if (thread == 0) store(p, at.y, at.row, acc);
}

template <int THREADS, int V, bool X4>
void launch_blocks(const SgemvArgs& p, const Context& ctx) {
  static PerDevice known;
  const RowGrid grid(p, 1);
  auto* kernel = long_rows_kernel<THREADS, V, X4>;
  int cluster = 1;
  if (waits_for_previous(reinterpret_cast<const void*>(kernel), known))  // clusters came with the same hardware
    while (cluster < MAX_CLUSTER && int64_t(grid.blocks()) * cluster * THREADS < 640 * int64_t(ctx.sm_count) &&
           int64_t(cluster) * THREADS * V * in_flight<V> < p.n)
      cluster *= 2;
  launch_overlapping(kernel, {grid.blocks() * cluster, THREADS, cluster}, ctx, known, p, grid, unsigned(cluster));
}

// A block of 1024 threads reaches further along a row before clusters are needed, and they cost a microsecond.
template <int V, bool X4>
void launch(const SgemvArgs& p, const Context& ctx) {
  const bool few = p.m * p.batch <= 2 * int64_t(ctx.sm_count) && p.n >= 1024 * V * in_flight<V>;
  few ? launch_blocks<1024, V, X4>(p, ctx) : launch_blocks<256, V, X4>(p, ctx);
}

}  // namespace

void sgemv_long_rows(const SgemvArgs& p, const Context& ctx) {
  const bool vectors = reads_vectors(p);
  if (p.a.cs != 1) return vectors ? sgemv_warp_per_row_vec4(p, ctx) : sgemv_warp_per_row(p, ctx);
  if (!vectors) return launch<1, false>(p, ctx);
  x_is_vector(p) ? launch<4, true>(p, ctx) : launch<4, false>(p, ctx);
}

}  // namespace fl
