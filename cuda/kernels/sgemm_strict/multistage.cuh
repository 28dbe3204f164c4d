// Tiles whose warps all copy and multiply (multistage_tiles.h): a block's copies stage by stage, its way along k, and
// what becomes of its groups' sums, which meet in shared memory and are added in the order of the groups. Where there
// are few tiles k is split over the grid as well.
#pragma once

#include <algorithm>

#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/common/split_k.cuh"
#include "cuda/kernels/sgemm_strict/multistage_math.cuh"

namespace fl {

struct MultistagePlan {
  Operand a, b;
  TileGrid grid;
  float one;        // 1.0f, as a number that the compiler does not know
  unsigned splits;  // ranges of k, each a part of the grid
  bool c_by16;
  int64_t range;         // of k
  int64_t split_stride;  // from the sums of one range to those of the next
};

// What a block computes, and how many of its rows and columns exist.
struct BlockShare {
  int64_t batch, row, col, k, depth;
  int rows, cols;
};

template <class T>
__device__ __forceinline__ uint32_t next_stage(uint32_t stage, uint32_t first_stage) {
  return stage + T::STAGE_BYTES == first_stage + T::PIPELINE_BYTES ? first_stage : stage + T::STAGE_BYTES;
}

// The copies of a step together, before its FMAs.
template <class T>
struct TogetherCopies {
  typename T::CopyA a;
  typename T::CopyB b;
  uint32_t into;  // the next stage
  int64_t left;   // k to copy

  __device__ __forceinline__ TogetherCopies(const MultistagePlan& plan, const BlockShare& of, uint32_t shared, int t)
      : a(plan.a, T::SLICES ? first_of(plan.a, of.batch, of.row, of.k) : first_of(plan.a, of.batch, of.k, of.row),
          minus_zeros, t),
        b(plan.b, first_of(plan.b, of.batch, of.k, of.col), plus_zeros, t),
        into(shared),
        left(of.depth) {
    (T::SLICES ? a.lines : a.length) = of.rows;
    b.length = of.cols;
  }

  __device__ __forceinline__ void multiply(MultistageSums<T>& sums, const MultistagePlan& plan, const BlockShare& of,
                                           uint32_t shared, int group, int a_offset, int b_offset) {
    if constexpr (T::ASYNC) multiply_async(sums, of, shared, group, a_offset, b_offset);
    else multiply_by_registers(sums, plan, of, shared, group, a_offset, b_offset);
  }

 private:
  __device__ __forceinline__ void multiply_async(MultistageSums<T>& sums, const BlockShare& of, uint32_t shared,
                                                 int group, int a_offset, int b_offset) {
#pragma unroll 1
    for (int s = 0; s < T::STAGES - 1; ++s) copy_next(shared);
    uint32_t stage = shared;
#pragma unroll 1
    for (int64_t k = 0; k < of.depth; k += T::BK) {
      ptx::wait_copies<T::STAGES - 2>();
      __syncthreads();  // everybody's copies of this stage have arrived, and the one that is filled next has been read
      copy_next(shared);
      sums.multiply(stage + a_offset, stage + b_offset, k_left(of.depth - k, T::BK), group);
      stage = next_stage<T>(stage, shared);
    }
  }

  // Before the copies of a step, and after them.
  __device__ __forceinline__ void begin() { (T::SLICES ? a.length : a.lines) = b.lines = k_left(left, T::BK); }
  __device__ __forceinline__ void end() {
    if constexpr (T::SLICES) a.next_columns();
    else a.next_lines();
    b.next_lines();
    left -= T::BK;
  }
  __device__ __forceinline__ void copy_next(uint32_t first_stage) {
    if (left > 0) {
      begin();
      a(into);
      b(into + T::A_BYTES);
      end();
      into = next_stage<T>(into, first_stage);
    }
    ptx::commit_copies();
  }

  // With one stage: the loads of the next step pass while this one is multiplied.
  __device__ __forceinline__ void multiply_by_registers(MultistageSums<T>& sums, const MultistagePlan& plan,
                                                        const BlockShare& of, uint32_t shared, int group, int a_offset,
                                                        int b_offset) {
    by_path(plan.a.path, [&]<CopyPath A> {
      by_path(plan.b.path, [&]<CopyPath B> {
        const auto fetch_next = [&] {
          if (left <= 0) return;
          begin();
          a.template fetch<A>();
          b.template fetch<B>();
          end();
        };
        fetch_next();
#pragma unroll 1
        for (int64_t k = 0; k < of.depth; k += T::BK) {
          if (k > 0) __syncthreads();  // the stage has been read
          a.template store<A>(shared);
          b.template store<B>(shared + T::A_BYTES);
          __syncthreads();
          fetch_next();
          sums.multiply(shared + a_offset, shared + b_offset, T::BK, group);
        }
      });
    });
  }
};

// Stores a part of the groups' sums from row `first` of the tile on, added up in their order: neighbouring lanes have
// neighbouring columns, whatever the alignment of C, and a warp four rows at a time. In 32 x 64 tiles, which are for
// products with few rows, two: of four some would often not exist, and 13 x 6642 x 11 took 7 % longer. In 32 x 32 tiles
// four are 4 % faster.
template <class T>
__device__ __forceinline__ void store_rows(const SgemmArgs& p, const LinearCombination& scaled, const Corner& at,
                                           int first, uint32_t parts, int t) {
  constexpr int WARPS = T::THREADS / 32, ROWS = T::BM / T::TM * T::SUMS_ROWS, COLS = (T::BN + 31) / 32;
  constexpr int AT_A_TIME = T::BM == 32 && T::BN == 64 && !T::SLICES ? 2 : 4;
  static_assert(ROWS % (AT_A_TIME * WARPS) == 0);
  const int lane = t % 32;
#pragma unroll 1
  for (int row = t / 32; row < min(at.rows - first, ROWS); row += AT_A_TIME * WARPS) {
    float sums[AT_A_TIME][COLS];
#pragma unroll
    for (int r = 0; r < AT_A_TIME; ++r)
#pragma unroll
      for (int j = 0; j < COLS; ++j) {
        if (T::BN % 32 != 0 && lane + 32 * j >= T::BN) continue;
        const uint32_t from = parts + ((row + r * WARPS) * T::B_LD + lane + 32 * j) * 4;
        sums[r][j] = ptx::load1(from);
#pragma unroll
        for (int g = 1; g < T::K_GROUPS; ++g) sums[r][j] += ptx::load1(from + g * T::SUMS_BYTES);
      }
    float* c = at.c + (first + row) * p.c.rs + lane * p.c.cs;
#pragma unroll
    for (int r = 0; r < AT_A_TIME; ++r, c += WARPS * p.c.rs)
#pragma unroll
      for (int j = 0; j < COLS; ++j)
        if (first + row + r * WARPS < at.rows && lane + 32 * j < at.cols) scaled.store(c + 32 * j * p.c.cs, sums[r][j]);
  }
}

// The same in fours of a row, of a whole tile.
template <class T>
__device__ __forceinline__ void store_fours(const SgemmArgs& p, const Corner& at, uint32_t parts, int t) {
#pragma unroll 4
  for (int q = t; q < T::BM * T::BN / 4; q += T::THREADS) {
    const int row = q / (T::BN / 4), col = q % (T::BN / 4) * 4;
    const uint32_t from = parts + (row * T::B_LD + col) * 4;
    float4 sum = ptx::load4(from);
#pragma unroll
    for (int g = 1; g < T::K_GROUPS; ++g) sum = add(sum, ptx::load4(from + g * T::SUMS_BYTES));
    put4(p, at.c + row * p.c.rs + col, row < at.rows ? at.cols - col : 0, sum);
  }
}

// The groups' sums, some rows of each thread at a time: into shared memory, `mine` for this thread, and from there into
// C.
template <class T>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const MultistagePlan& plan,
                                              const MultistageSums<T>& sums, const Corner& at, uint32_t shared,
                                              uint32_t mine, int t) {
#pragma unroll
  for (int first = 0; first < T::TM; first += T::SUMS_ROWS) {
    __syncthreads();  // the pipeline, or the rows before these, have been read
    // A 16-byte store wants four neighbouring registers; the products with one free the sums from that (docs).
#pragma unroll
    for (int i = 0; i < T::SUMS_ROWS; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; j += 4) {
        const float* four = &sums.acc[first + i][j];
        ptx::store4(mine + (T::down(i) * T::B_LD + j * 4) * 4, plan.one * float4{four[0], four[1], four[2], four[3]});
      }
    __syncthreads();
    if (T::SPREAD && plan.c_by16) store_fours<T>(p, at, shared, t);
    else if (T::K_GROUPS == 1 && p.beta == 0.0f)
      store_rows<T>(p, {p.alpha, 0.0f}, at, first * (T::BM / T::TM), shared, t);
    else store_rows<T>(p, epilogue(p), at, first * (T::BM / T::TM), shared, t);
  }
}

// A block's range of k of its tile.
template <class T, bool SPLIT_K, class Copies>
__device__ __forceinline__ void compute_block(const SgemmArgs& p, const MultistagePlan& plan, unsigned block) {
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, group = t / T::GROUP_THREADS, warp = t % T::GROUP_THREADS / 32;
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(SPLIT_K ? block / plan.splits : block);
  const unsigned part = SPLIT_K ? block % plan.splits : 0;
  BlockShare of{tile.batch, tile.row * T::BM, tile.col * T::BN, SPLIT_K ? part * plan.range : 0, p.k};
  if (SPLIT_K) of.depth = min(plan.range, p.k - of.k);
  of.rows = static_cast<int>(min(p.m - of.row, int64_t{T::BM}));
  of.cols = static_cast<int>(min(p.n - of.col, int64_t{T::BN}));
  Corner at{p.c.data + of.batch * p.c.bs + of.row * p.c.rs + of.col * p.c.cs, of.rows, of.cols};
  Copies copies(plan, of, shared, t);
  const int row = T::SLICES ? lane.row : warp / T::WARPS_N * 8 * T::TM + lane.row * 4;
  const int col = warp % T::WARPS_N * 4 * T::TN + lane.col * 4;
  pdl_wait();
  MultistageSums<T> sums;
  copies.multiply(sums, plan, of, shared, group, sums.a_offset(group, row), sums.b_offset(group, col));
  // What is left to do takes as long as the next kernel needs to start. In slices it takes longer: the reduction's
  // blocks may wait beside this, those of another product would land unevenly.
  if (!T::SLICES || plan.splits > 1) pdl_launch_next();
  if (T::SPREAD) ptx::wait_copies<0>();
  if (SPLIT_K) at.c += part * plan.split_stride;
  sum_and_store<T>(p, plan, sums, at, shared, shared + group * T::SUMS_BYTES + (row * T::B_LD + col) * 4, t);
}

template <class T, bool SPLIT_K, class Copies>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    strict_multistage_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ MultistagePlan plan) {
  if constexpr (T::RUNS_HERE) compute_block<T, SPLIT_K, Copies>(p, plan, blockIdx.x);
  else not_for_this_target();
}

template <class T, class Copies>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    strict_multistage_group_kernel(const __grid_constant__ Group<MultistagePlan> group) {
  const auto [of, block] = group.place(blockIdx.x);
  if constexpr (T::RUNS_HERE) compute_block<T, false, Copies>(of.p, of.plan, block);
  else not_for_this_target();
}

// ---------------------------------------------------------------- launches
// How much shared memory a block asks for so that the blocks of a launch come to all multiprocessors alike. Blocks of
// the next kernel begin while the last ones of this one end, and land where there is room: two of them on a
// multiprocessor and none on another, which took 45 instead of 33 us for 216 x 3902 x 499 in 64 x 128 tiles. So there
// is room for as many as come to each, or for all that fit where that is no constraint.
template <class T>
LaunchShape with_room(unsigned blocks, const Context& ctx) {
  const auto multiprocessors = static_cast<unsigned>(ctx.sm_count);
  const int shared = static_cast<int>(ctx.device->shared_per_sm);
  const int each = static_cast<int>((blocks + multiprocessors - 1) / multiprocessors);
  const bool all_fit = blocks <= multiprocessors / 2 || each >= T::BLOCKS;
  return {.blocks = blocks,
          .threads = T::THREADS,
          .shared_bytes = all_fit ? T::SHARED_BYTES : std::max(T::SHARED_BYTES, shared / (each + 1) - 768),
          .most_shared_bytes = std::max(T::SHARED_BYTES, shared / 2)};
}

template <class T, bool SPLIT_K, class Copies>
void launch_multistage(const SgemmArgs& p, const MultistagePlan& plan, const Context& ctx) {
  const unsigned blocks = plan.grid.blocks() * plan.splits;
  LaunchShape shape{blocks, T::THREADS, T::SHARED_BYTES};
  if constexpr (!T::SLICES && T::ASYNC) shape = with_room<T>(blocks, ctx);
  launch_kernel<strict_multistage_kernel<T, SPLIT_K, Copies>>(shape, ctx, p, plan);
}

// Where there are no asynchronous copies: the same sums in the same order.
template <MultistageTile TILE>
struct ByRegisters {
  using T = Multistage<TILE, false>;
  using Copies = TogetherCopies<T>;
  static bool wanted(const Context& ctx) {
    return !copies_async(launched<strict_multistage_kernel<T, true, Copies>>().function, ctx);
  }
  static void launch(const SgemmArgs& p, const MultistagePlan& plan, const Context& ctx) {
    launch_multistage<T, true, Copies>(p, plan, ctx);
  }
};

// launch(problem, plan) starts the kernel.
template <MultistageTile TILE, class Launch>
void strict_multistage(const SgemmArgs& call, const Context& ctx, const Launch& launch) {
  const SgemmArgs p = transposed_problem(call, TILE);
  const SplitKPlan split_k = split_k_plan(call, TILE);
  const SgemmArgs part = begin_split_k(p, split_k, ctx);
  bool fours = TILE.spread();
  if constexpr (TILE.any_gpu && !TILE.slices()) fours |= ByRegisters<TILE>::wanted(ctx);
  launch(part, MultistagePlan{TILE.slices() ? operand(p.a, p.a.rs, p.a.cs) : operand(p.a, p.a.cs, p.a.rs, fours * p.m),
                              operand(p.b, p.b.rs, p.b.cs, fours * p.n), TileGrid(p.m, p.n, p.batch, TILE.BM, TILE.BN),
                              1.0f, static_cast<unsigned>(split_k.splits), aligned16(part.c) && part.c.cs == 1,
                              split_k_rule(TILE).range(p.k, split_k.splits), split_k.stride(p)});
  reduce_split_k(p, split_k, ctx);
}

}  // namespace fl
