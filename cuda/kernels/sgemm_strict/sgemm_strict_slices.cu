// Strict SGEMM for few tiles on any GPU: each of the eight warps of a block multiplies the whole tile over a slice of
// every step along k, and the warps' sums are added in shared memory, in the order of the warps. Where there are fewer
// tiles than multiprocessors k is split over the grid as well.
//
//   row      tile      thread tile   stages of 64 k   shared memory   by registers
//   32x32s8  32 x 32      4 x 8            4             71 KiB          36 KiB
//   64x32s8  64 x 32      8 x 8            3             78 KiB          36 KiB
//
// All threads copy and multiply. Copies are asynchronous where the device has that; else, for 7.5, the loads of a step
// wait in registers while the one before it is multiplied. A lies with k contiguous, so that rows of C-order operands
// arrive by 16 bytes.
//
// What bounds it: copies and the reads of fragments share one pipe to shared memory, and warps that wait to begin a
// copy do not multiply. A k of 64 x 32 takes 31 cycles, of which FMAs are 16.
#include "cuda/kernels/common/split_k.cuh"
#include "cuda/kernels/sgemm_strict/register_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict_plan.h"

namespace fl {
namespace {

struct SlicePlan {
  Operand a, b;
  TileGrid grid;
  float one;             // 1.0f, as a number that the compiler does not know
  unsigned splits;       // ranges of k, each a part of the grid
  int64_t range;         // of k, whole steps
  int64_t split_stride;  // from the sums of one range to those of the next
};

template <SliceTile TILE, bool ASYNCHRONOUS>
struct Slices {
  static_assert(must_be_sound<TILE>());
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM(), TN = TILE.TN();
  static constexpr int GROUPS = TILE.K_GROUPS, THREADS = TILE.THREADS, LINES = BK / GROUPS;
  static constexpr int STAGES = TILE.stages, STAGE_BYTES = TILE.stage_bytes(), RING_BYTES = STAGES * STAGE_BYTES;
  static constexpr int PITCH = padded_row(BN), SUMS_ROWS = TILE.sums_rows(), SUMS_BYTES = TILE.sums_bytes();
  static constexpr int SHARED_BYTES = TILE.shared_bytes(ASYNCHRONOUS);
  // Code for less than 8.0 knows no asynchronous copies.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static constexpr bool ASYNC = false;
#else
  static constexpr bool ASYNC = ASYNCHRONOUS;
#endif
  static constexpr int BLOCKS = ASYNC ? TILE.blocks : 1;  // else registers hold what is under way
  using CopyA = std::conditional_t<ASYNC, TileCopy<BM, BK, THREADS, Tail::of_columns>, RegisterCopy<BM, BK, THREADS>>;
  using CopyB = std::conditional_t<ASYNC, TileCopy<BK, BN, THREADS, Tail::of_lines>, RegisterCopy<BK, BN, THREADS>>;
};

// Where a block's outputs begin in C, and which of them exist.
struct SliceCorner {
  int64_t batch, row, col;
  int rows, cols;
};

// A thread's sums. Its rows of A come in fours of k, reloaded one by one with the last FMA that needs them.
template <class T>
struct SliceSums {
  static constexpr int A_PITCH = padded_row(T::BK) * 4, B_PITCH = padded_row(T::BN) * 4;
  float acc[T::TM][T::TN] = {};

  static __device__ __forceinline__ void load_b(float (&b)[T::TN], uint32_t from) {
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b[j], ptx::load4(from + j * 16));
  }

  // The group's lines of a step: a is the thread's first row there, b its first columns.
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b) {
    float4 a_rows[T::TM];
    float b_frag[2][T::TN];
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a_rows[i] = ptx::load4(a + i * 8 * A_PITCH);
    load_b(b_frag[0], b);
#pragma unroll
    for (int l = 0; l < T::LINES; ++l) {
      if (l + 1 < T::LINES) load_b(b_frag[(l + 1) % 2], b + (l + 1) * B_PITCH);
#pragma unroll
      for (int i = 0; i < T::TM; ++i) {
        const float a_frag = component(a_rows[i], l % 4);
#pragma unroll
        for (int step = 0; step < T::TN; ++step) {
          const int j = i % 2 ? T::TN - 1 - step : step;
          acc[i][j] = fmaf(a_frag, b_frag[l % 2][j], acc[i][j]);
        }
        if (l % 4 == 3 && l + 1 < T::LINES) a_rows[i] = ptx::load4(a + i * 8 * A_PITCH + (l + 1) * 4);
      }
    }
  }
};

// The groups' sums, a few rows of each thread at a time: into shared memory, and from there in the order of the groups,
// a warp to a row, into C.
template <class T>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const SliceSums<T>& sums, const SliceCorner& at,
                                              uint32_t shared, int t, float one) {
  const int warp = t / 32, lane_id = t % 32;
  const Lane lane(lane_id);
  const uint32_t mine = shared + warp * T::SUMS_BYTES + (lane.row * T::PITCH + lane.col * 4) * 4;
#pragma unroll
  for (int first = 0; first < T::TM; first += T::SUMS_ROWS) {
    __syncthreads();  // the pipeline, or the rows before these, have been read
#pragma unroll
    for (int i = 0; i < T::SUMS_ROWS; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; j += 4) {
        const float* four = &sums.acc[first + i][j];
        ptx::store4(mine + (i * 8 * T::PITCH + j * 4) * 4, one * float4{four[0], four[1], four[2], four[3]});
      }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 8 * T::SUMS_ROWS; r += T::GROUPS) {
      const int row = first * 8 + r + warp;
      const uint32_t from = shared + ((r + warp) * T::PITCH + lane_id) * 4;
#pragma unroll
      for (int j = 0; j < T::BN; j += 32) {
        if (r + warp >= 8 * T::SUMS_ROWS || row >= at.rows || lane_id + j >= at.cols) continue;
        float sum = ptx::load1(from + j * 4);
#pragma unroll
        for (int g = 1; g < T::GROUPS; ++g) sum += ptx::load1(from + g * T::SUMS_BYTES + j * 4);
        store(p, at.batch, at.row + row, at.col + lane_id + j, sum);
      }
    }
  }
}

// A block's way along its range of k, `depth` from where the copies begin.
template <class T>
__device__ __forceinline__ void multiply_async(typename T::CopyA& a, typename T::CopyB& b, SliceSums<T>& sums,
                                               int64_t depth, uint32_t shared, uint32_t a_first, uint32_t b_first) {
  int64_t to_copy = depth;
  int into = 0, from = 0;
  auto copy_next = [&] {
    if (to_copy > 0) {
      a.length = b.lines = k_left(to_copy, T::BK);
      a(shared + into);
      b(shared + into + T::CopyA::BYTES);
      a.next_columns();
      b.next_lines();
      to_copy -= T::BK;
      into = into + T::STAGE_BYTES == T::RING_BYTES ? 0 : into + T::STAGE_BYTES;
    }
    ptx::commit_copies();
  };
#pragma unroll 1
  for (int s = 0; s < T::STAGES - 1; ++s) copy_next();
#pragma unroll 1
  for (int64_t k = 0; k < depth; k += T::BK) {
    ptx::wait_copies<T::STAGES - 2>();
    __syncthreads();  // everybody's copies of this stage have arrived, and the one that is filled next has been read
    copy_next();
    sums.multiply(a_first + from, b_first + from);
    from = from + T::STAGE_BYTES == T::RING_BYTES ? 0 : from + T::STAGE_BYTES;
  }
}

// The same with one stage: the loads of the next step pass while this one is multiplied.
template <class T>
__device__ __forceinline__ void multiply_by_registers(typename T::CopyA& a, typename T::CopyB& b, SliceSums<T>& sums,
                                                      int64_t depth, uint32_t shared, uint32_t a_first,
                                                      uint32_t b_first) {
  auto fetch = [&](int64_t left) {
    if (left <= 0) return;
    a.length = b.lines = k_left(left, T::BK);
    a.fetch();
    b.fetch();
    a.next_columns();
    b.next_lines();
  };
  fetch(depth);
#pragma unroll 1
  for (int64_t k = 0; k < depth; k += T::BK) {
    if (k > 0) __syncthreads();  // the stage has been read
    a(shared);
    b(shared + T::CopyA::BYTES);
    __syncthreads();
    fetch(depth - k - T::BK);
    sums.multiply(a_first, b_first);
  }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    strict_slices_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ SlicePlan plan) {
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, line = t / 32 * T::LINES;  // the group's first of a step
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(blockIdx.x / plan.splits);
  const unsigned range = blockIdx.x % plan.splits;
  const int64_t first = range * plan.range, depth = min(plan.range, p.k - first);
  SliceCorner at{tile.batch, tile.row * T::BM, tile.col * T::BN};
  at.rows = static_cast<int>(min(p.m - at.row, int64_t{T::BM}));
  at.cols = static_cast<int>(min(p.n - at.col, int64_t{T::BN}));
  typename T::CopyA a(plan.a, first_of(plan.a, tile.batch, at.row, first), minus_zeros, t);
  typename T::CopyB b(plan.b, first_of(plan.b, tile.batch, first, at.col), plus_zeros, t);
  a.lines = at.rows;
  b.length = at.cols;
  const uint32_t a_first = shared + lane.row * SliceSums<T>::A_PITCH + line * 4;
  const uint32_t b_first = shared + T::CopyA::BYTES + line * SliceSums<T>::B_PITCH + lane.col * 16;
  SliceSums<T> sums;
  pdl_wait();
  if constexpr (T::ASYNC) multiply_async<T>(a, b, sums, depth, shared, a_first, b_first);
  else multiply_by_registers<T>(a, b, sums, depth, shared, a_first, b_first);
  // The reduction's blocks may wait beside this; those of another product would land unevenly.
  if (plan.splits > 1) pdl_launch_next();
  at.col += range * plan.split_stride;
  sum_and_store<T>(p, sums, at, shared, t, plan.one);
}

template <SliceTile TILE, bool ASYNC>
void launch_slices(const SgemmArgs& p, const SlicePlan& plan, const Context& ctx) {
  using T = Slices<TILE, ASYNC>;
  launch_kernel<strict_slices_kernel<T>>({plan.grid.blocks() * plan.splits, T::THREADS, T::SHARED_BYTES}, ctx, p, plan);
}

template <SliceTile TILE>
void strict_slices(const SgemmArgs& p, const Context& ctx) {
  const SplitKPlan split_k = split_k_plan(p, TILE);
  SlicePlan plan{operand(p.a, p.a.rs, p.a.cs), operand(p.b, p.b.rs, p.b.cs),
                 TileGrid(p.m, p.n, p.batch, TILE.BM, TILE.BN), 1.0f, static_cast<unsigned>(split_k.splits)};
  plan.range = slices_range(p.k, split_k.splits);
  SgemmArgs part = p;
  float* sums = static_cast<float*>(ctx.workspace);
  if (split_k.splits > 1) {
    part.alpha = 1.0f, part.beta = 0.0f, part.c = {sums, split_k.ld, 1, p.m * split_k.ld};
    plan.split_stride = p.batch * p.m * split_k.ld;
  }
  if (ctx.device->has(feature_cp_async)) launch_slices<TILE, true>(part, plan, ctx);
  else launch_slices<TILE, false>(part, plan, ctx);
  if (split_k.splits > 1) reduce_split_k(p, split_k.splits, sums, split_k.ld, ctx);
}

}  // namespace

void sgemm_strict_32x32s8(const SgemmArgs& p, const Context& ctx) { strict_slices<strict_32x32s8>(p, ctx); }
void sgemm_strict_64x32s8(const SgemmArgs& p, const Context& ctx) { strict_slices<strict_64x32s8>(p, ctx); }

}  // namespace fl
