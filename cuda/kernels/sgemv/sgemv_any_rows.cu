// SGEMV on contiguous rows that begin anywhere, 16-byte loads of A and of x all the same: 32 threads to a row, 64, or a
// block of 256; where rows are few a cluster of blocks.
//
// A row is read from its first 32-byte sector on. Where its pieces of four begin there, x lies up to three floats off a
// 16-byte boundary: each thread reads two neighbouring pieces of x and puts together the one it needs. How far off is
// the same for a whole row, so that the loop exists once for each of the four cases. An x whose elements are apart is
// read one by one. What is before and after the pieces is added element by element.
//
// 32-byte sectors: reads 100 %. Bound: memory. By 4-byte loads, each in flight by itself and with every sector on the
// edge of a warp's share read twice, 16383 x 16381 took 256 us (245 now) and 157 x 109317 30 us (19).
#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/common/halves.cuh"
#include "cuda/kernels/sgemv/gemv_other_order.cuh"
#include "cuda/kernels/sgemv/gemv_row_sums.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr int STRIDED = 4;  // the shift of an x whose elements are not neighbours

// How a row is cut. No load of x goes past either of its ends.
struct RowSpan {
  unsigned head;   // elements before the first piece
  int64_t pieces;  // of four
  int shift;       // x begins so many elements after a 16-byte boundary where the first piece does

  // The row begins `place` elements after a sector, or a whole number of them.
  __device__ __forceinline__ RowSpan(uintptr_t place, const float* x, int64_t inc, int64_t n) {
    head = -static_cast<unsigned>(place) & 7;
    shift = inc == 1 ? static_cast<int>((reinterpret_cast<uintptr_t>(x) / 4 + head) & 3) : STRIDED;
    if (shift < STRIDED && static_cast<int>(head) < shift) head += 4;
    const int64_t behind = shift > 0 && shift < STRIDED ? 4 - shift : 0;
    pieces = n - head < behind ? 0 : (n - head - behind) / 4;
    if (pieces == 0) head = 0;
  }
};

template <int S>
__device__ __forceinline__ float4 load_shifted(const float* x, int64_t inc) {
  if constexpr (S == STRIDED) return load_x4<false>(x, inc);
  const float4 v = load_x4<true>(x, 1);
  if constexpr (S == 0) return v;
  const float4 w = load_x4<true>(x + 4, 1);
  if constexpr (S == 1) return make_float4(v.y, v.z, v.w, w.x);
  if constexpr (S == 2) return make_float4(v.z, v.w, w.x, w.y);
  return make_float4(v.w, w.x, w.y, w.z);
}

// U pieces, `step` apart. Not ALL: only `here` are left, and the first is read again in place of the others: a
// condition on a load makes the compiler wait for one before it issues the next.
template <int S, int U, bool ALL, class T>
__device__ __forceinline__ float add_pieces(float acc, const T* a, const float* x, int64_t inc, unsigned step,
                                            unsigned here) {
  float4 a_frag[U], x_frag[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    const int64_t j = ALL || u * step < here ? int64_t{4} * u * step : 0;
    a_frag[u] = load4_once(a + j);
    x_frag[u] = load_shifted<S>(x + (S == STRIDED ? j * inc : j), inc);
  }
#pragma unroll
  for (int u = 0; u < U; ++u) acc = ALL || u * step < here ? dot4(a_frag[u], x_frag[u], acc) : acc;
  return acc;
}

// The pieces piece, piece + step, ...
template <int S, int U, class T>
__device__ __forceinline__ float dot_pieces(const T* a, const float* x, int64_t inc, int64_t piece, unsigned step,
                                            int64_t pieces) {
  float acc = 0.0f;
#pragma unroll 1
  for (; piece < pieces; piece += U * step) {
    const T* a_here = a + 4 * piece;
    const float* x_here = S == STRIDED ? x + 4 * piece * inc : x + 4 * piece - S;
    if (piece + (U - 1) * step < pieces) acc = add_pieces<S, U, true>(acc, a_here, x_here, inc, step, 0);
    else acc = add_pieces<S, U, false>(acc, a_here, x_here, inc, step, at_most(pieces - piece, U * step));
  }
  return acc;
}

// What one thread of `threads` adds up of a row.
template <int U, class T>
__device__ __forceinline__ float dot_row(const T* a, uintptr_t place, const float* x, int64_t inc, int64_t n,
                                         unsigned thread, unsigned threads) {
  const RowSpan span(place, x, inc, n);
  const T* from = a + span.head;
  const float* x_from = x + span.head * inc;
  float acc = 0.0f;
  switch (span.shift) {
    case 0: acc = dot_pieces<0, U>(from, x_from, inc, thread, threads, span.pieces); break;
    case 1: acc = dot_pieces<1, U>(from, x_from, inc, thread, threads, span.pieces); break;
    case 2: acc = dot_pieces<2, U>(from, x_from, inc, thread, threads, span.pieces); break;
    case 3: acc = dot_pieces<3, U>(from, x_from, inc, thread, threads, span.pieces); break;
    default: acc = dot_pieces<STRIDED, U>(from, x_from, inc, thread, threads, span.pieces);
  }
  const int64_t rest = n - 4 * span.pieces;  // 17 at most
#pragma unroll 1
  for (int64_t t = thread; t < rest; t += threads) {
    const int64_t j = t < span.head ? t : t + 4 * span.pieces;
    acc = fmaf(load1(a + j), __ldg(x + j * inc), acc);
  }
  return acc;
}

constexpr int THREADS = 256;

template <int TEAM, int U, class T>
__device__ __forceinline__ void any_rows_of_block(const SgemvArgs& p, const RowGrid& grid, unsigned cluster,
                                                  unsigned block) {
#if __CUDA_ARCH__ >= 900
  if (cluster > 1) ptx::cluster_arrive_relaxed();
#endif
  pdl_wait();
  const unsigned rank = block % cluster, thread = threadIdx.x % TEAM;
  const unsigned threads = TEAM == THREADS ? cluster * TEAM : TEAM;  // a constant takes fewer registers
  const RowBlock at = grid.block(p, block / cluster);
  const int64_t row = at.row + threadIdx.x / TEAM;
  float acc = 0.0f;
  if (row < p.m) {
    // The float32 copy of what is in 16 bits would begin on a sector.
    const float* seen = at.a + row * p.a.rs;
    const uintptr_t place = std::is_same_v<T, float> ? reinterpret_cast<uintptr_t>(seen) / 4 : seen - p.a.data;
    acc = dot_row<U>(place_of<T>(p.stored[0], seen), place, at.x, p.x.inc, p.n, rank * TEAM + thread, threads);
  }
  acc = sum_over_cluster(sum_over_team<THREADS, TEAM>(acc), rank, cluster);
  if (rank == 0 && thread == 0 && row < p.m) store(p, at.y, row, acc);
}

template <int TEAM, int U, int BLOCKS, class T>
__global__ void __launch_bounds__(THREADS, code_for<100, 120>&& BLOCKS == 5 ? 4 : BLOCKS)
    any_rows_kernel(SgemvArgs p, RowGrid grid, unsigned cluster) {
  any_rows_of_block<TEAM, U, T>(p, grid, cluster, blockIdx.x);
}
template <int TEAM, int U, int BLOCKS>
__global__ void __launch_bounds__(THREADS, code_for<100, 120>&& BLOCKS == 5 ? 4 : BLOCKS)
    any_rows_group_kernel(const __grid_constant__ Group<ClusterGrid, SgemvArgs> group) {
  const auto [of, block] = group.place(blockIdx.x);
  any_rows_of_block<TEAM, U, float>(of.p, of.plan.rows, of.plan.cluster, block);
}

template <int TEAM, int U, int BLOCKS, class T>
void launch_with_teams(const SgemvArgs& p, const Context& ctx) {
  const RowGrid grid(p, THREADS / TEAM);
  const bool clusters = TEAM == THREADS && has_clusters(launched<any_rows_kernel<TEAM, U, BLOCKS, T>>(), ctx);
  const int cluster = clusters ? blocks_per_row(p, ctx.sm_count, THREADS) : 1;
  const LaunchShape shape{.blocks = grid.blocks() * cluster, .threads = THREADS, .cluster = cluster};
  if constexpr (std::is_same_v<T, float>)
    if (keep<any_rows_group_kernel<TEAM, U, BLOCKS>>(shape, ctx, p, ClusterGrid{grid, unsigned(cluster)})) return;
  launch_kernel<any_rows_kernel<TEAM, U, BLOCKS, T>>(shape, ctx, p, grid, unsigned(cluster));
}

template <int TEAM, int U, int BLOCKS>
void launch(const SgemvArgs& p, const Context& ctx) {
  with_type(p.stored[0], [&](auto number) { launch_with_teams<TEAM, U, BLOCKS, decltype(number)>(p, ctx); });
}

}  // namespace

// As few threads to a row as keep the device busy: the sums and the ends of a row are shared work. Two pieces in flight
// and six blocks on a multiprocessor where clusters share a row: four, five left a second wave (157 x 109317: 25 us).
void sgemv_any_rows(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs != 1) return aligned16(p.a) ? sgemv_warp_per_row_vec4(p, ctx) : sgemv_warp_per_row(p, ctx);
  const int64_t rows = p.m * p.batch;
  if (p.n < 2048 && rows >= 1500) return launch<32, 4, 5>(p, ctx);
  if (p.n < 1024 || rows >= 750) return launch<64, 4, 4>(p, ctx);
  launch<256, 2, 6>(p, ctx);
}

}  // namespace fl
