// Strict SGEMM for Hopper from 500 rows and columns up: warp-specialised. Four warps copy (producers), eight
// multiply (consumers), and a pipeline of stages with two barriers each lies between them.
//
// Why the roles are split: an FMA takes an issue slot of its own, so whatever else the multiplying warps issue is lost.
// They issue fragment loads and FMAs only. setmaxnreg moves the copying warps' registers to them: 168 each at the
// start, then 56 and 224.
//
// Sliced-K: the eight warps form k_groups groups of warps_m x warps_n warps; each group takes every k_groups-th step of
// BK along k for the whole tile, and the groups' sums are added in shared memory in the order of the groups. cluster_k
// blocks of a cluster may share k as well, in contiguous ranges. With neither, every output is one chain of FMAs in
// ascending k, and the grid is persistent: copies for the next tile start while this one is stored.
//
// What bounds it: a 16-byte read of shared memory costs the issuing partition about as many cycles as it writes
// registers, so a TM x TN thread tile can reach TM*TN / (TM*TN + TM + TN) of peak: 84.2 % at 8 x 16, 85.7 % at 12 x 12.
// A is stored with m contiguous because a fragment along k keeps its register's parity through a whole k step, which
// costs bank conflicts in the register file (in a prototype 48 instead of 52 TFLOP/s).
#pragma once

#include <algorithm>

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/split_k.cuh"
#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_strict/stream_k.cuh"

namespace fl {

// Each producer fills every PRODUCERS-th stage. What a stage costs beside its copies is paid by one of them; where
// tiles are narrow that is what bounds the copies, since the scheduler lets multiplying warps go first. Where each
// group of warps has blocks of k of its own, it has a producer of its own as well, and waits for no other group's
// stages.
template <class T>
__device__ __forceinline__ void produce(const SgemmArgs& p, const PipelinedPlan& plan, const CUtensorMap* b_map,
                                        uint32_t shared, int rank, int t) {
  constexpr int EDGE_UNROLL = T::BLOCK_PER_GROUP ? 1 : T::PRODUCERS;  // as registers allow
  const int producer = T::PRODUCERS > 1 ? t / T::PRODUCER_THREADS : 0;
  if constexpr (T::PRODUCERS > 1) t %= T::PRODUCER_THREADS;
  if (T::TMA && t == 0) ptx::prefetch_map(b_map);
  PipelineState<T> pipeline{shared, producer, 1};
  for (unsigned number = first_unit<T>(); number < end_of_units<T>(plan); number += to_next_unit<T>()) {
    const WorkUnit unit = work_unit<T>(plan, rank, number);
    if (!unit.exists) continue;
    const Steps steps = unit.steps;
    const Tile tile = tile_of<T>(plan, unit.tile);
    const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
    const int64_t k = int64_t{steps.first + producer * (T::BLOCK_PER_GROUP ? T::BLOCK_STEPS : 1)} * T::BK;
    TileCopy<T::BK, T::BM, T::PRODUCER_THREADS, Tail::of_lines, EDGE_UNROLL, T::TMA, false, T::A_UNIT16> a(
        plan.a, first_of(plan.a, tile.batch, k, row), minus_zeros, t);
    TileCopy<T::BK, T::BN, T::PRODUCER_THREADS, Tail::of_lines, EDGE_UNROLL, false, false, T::B_UNIT16> b(
        plan.b, first_of(plan.b, tile.batch, k, col), plus_zeros, t);
    a.length = static_cast<int>(min(p.m - row, int64_t{T::BM}));
    b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
    pdl_wait();  // not sooner: all that comes before it overlaps the end of the kernel before
    auto fill = [&](int step, int to_next) {
      if (!T::TMA && step + 1 == plan.steps) a.lines = b.lines = plan.tail;
      if constexpr (T::HOPPER) ptx::barrier_wait(pipeline.empty(), pipeline.phase);
      else ptx::barrier_wait_patiently(pipeline.empty(), pipeline.phase);
      if constexpr (T::TMA) {
        const int warp = step % (T::PRODUCER_THREADS / 32);  // by turns: to start a box takes one about 100 cycles
        if (t == warp * 32) {
          ptx::barrier_expect_more(pipeline.full(), T::BK * T::BN * 4);
          ptx::load_box(pipeline.tiles() + T::A_BYTES, b_map, static_cast<int>(col), step * T::BK, pipeline.full());
        }
      } else {
        b(pipeline.tiles() + T::A_BYTES);
        b.next_lines(to_next);
      }
      a(pipeline.tiles());
      a.next_lines(to_next);
      ptx::barrier_arrive_after_copies(pipeline.full());
    };
    const int end = steps.first + steps.count;
    if constexpr (T::BLOCK_PER_GROUP) {
#pragma unroll 1
      for (int first = producer * T::BLOCK_STEPS; first < end; first += T::K_GROUPS * T::BLOCK_STEPS) {
        const int block_end = min(first + T::BLOCK_STEPS, end);
#pragma unroll 1
        for (int step = first; step < block_end; ++step) {
          fill(step, step + 1 < block_end ? 1 : (T::K_GROUPS - 1) * T::BLOCK_STEPS + 1);
          pipeline.template advance<T::K_GROUPS>();
        }
      }
    } else {
#pragma unroll 1
      for (int step = steps.first + producer; step < end; step += T::PRODUCERS) {
        fill(step, T::PRODUCERS);
        pipeline.template advance<T::PRODUCERS>();
      }
    }
  }
}

// The same through registers: pipelined_by_registers.cuh.
template <class T>
__device__ __forceinline__ void produce_by_registers(const SgemmArgs& p, const PipelinedPlan& plan, uint32_t shared,
                                                     int t);

// Where groups of warps, or blocks of a cluster, share k: group_sums.cuh.
template <class T, class Math>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const PipelinedPlan& plan, const Math& math,
                                              const Corner& at, int rank, int t);

// precision="reproducible": block_sums.cuh.
template <class T, class Math>
__device__ __forceinline__ void multiply_blocks(const SgemmArgs& p, const PipelinedPlan& plan, Math& math,
                                                const WorkUnit& unit, int group);

template <class T>
__device__ __forceinline__ void consume(const SgemmArgs& p, const PipelinedPlan& plan, uint32_t shared, int rank,
                                        int t) {
  const int warp = t % T::GROUP_THREADS / 32, group = T::group_of(t);
  const Lane lane = lane_of<T>(t % 32);
  WarpMath<T> math;
  math.pipeline = {shared, group, 0};
  math.a_offset = (warp / T::WARPS_N * T::LANE_ROWS * T::TM + lane.row * 4) * 4;
  math.b_offset = T::A_BYTES + (warp % T::WARPS_N * T::LANE_COLS * T::TN + lane.col * 4) * 4;
  for (unsigned number = first_unit<T>(); number < end_of_units<T>(plan); number += to_next_unit<T>()) {
    const WorkUnit unit = work_unit<T>(plan, rank, number);
    if (!unit.exists) continue;
    if constexpr (T::IN_BLOCKS) {
      multiply_blocks<T>(p, plan, math, unit, group);
      continue;
    }
    if (T::STREAM_K && unit.upper) StreamKSums<T>::load(plan, math);
    else math.zero();
    math.multiply(plan, unit.steps, group);
    if (T::STREAM_K && unit.lower) {
      StreamKSums<T>::save(plan, math);
      continue;
    }
    const Tile tile = tile_of<T>(plan, unit.tile);
    Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
    if constexpr (T::SPLIT_K && !T::TRIANGLE) at.c += unit.tile % plan.splits * plan.split_stride;
    if constexpr (T::PERSISTENT) store<T>(p, plan.one, math, at);
    else if constexpr (!T::IN_BLOCKS) sum_and_store<T>(p, plan, math, at, rank, t);
    if constexpr (T::TRIANGLE)
      if (!on_diagonal<T>(tile)) store_mirrored<T>(p, math, corner(p, tile.batch, tile.col * T::BN, tile.row * T::BM));
  }
}

template <class T>
__device__ __forceinline__ void pipelined_block(const SgemmArgs& p, const PipelinedPlan& plan,
                                                const CUtensorMap* b_map) {
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, rank = static_cast<int>(blockIdx.x % T::CLUSTER_K);
  if (!T::BY_REGISTERS && t < 32) {
    if (t < T::STAGES) {
      ptx::barrier_init(shared + T::BARRIERS + t * 16, T::PRODUCER_THREADS);
      ptx::barrier_init(shared + T::BARRIERS + t * 16 + 8, T::GROUP_THREADS);
    }
    if (T::BLOCK_PER_GROUP && t < T::MATH_THREADS / 32) ptx::barrier_init(shared + T::TURNS + t * 8, 32);
    ptx::barrier_init_fence();
  }
  __syncthreads();
  pdl_launch_next();
  if constexpr (T::CLUSTER_K > 1) ptx::cluster_arrive();
  if (t >= T::MATH_THREADS) {
    if constexpr (T::HOPPER) ptx::registers_down<T::COPY_REGISTERS>();
    if constexpr (T::BY_REGISTERS) {
      produce_by_registers<T>(p, plan, shared, t - T::MATH_THREADS);
    } else {
      produce<T>(p, plan, b_map, shared, rank, t - T::MATH_THREADS);
      ptx::wait_copies<0>();
    }
    if constexpr (T::CLUSTER_K > 1) {
      ptx::cluster_wait();
      ptx::cluster_arrive();
      ptx::cluster_wait();
    }
  } else {
    if constexpr (T::HOPPER) ptx::registers_up<T::MATH_REGISTERS>();
    pdl_wait();
    consume<T>(p, plan, shared, rank, t);
  }
}

// Whether the code that is being compiled may hold a kernel's body.
constexpr bool this_target_has(PipelinedFor level) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  return true;
#elif __CUDA_ARCH__ >= 800
  return level != PipelinedFor::hopper;
#else
  return level == PipelinedFor::any;
#endif
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    strict_pipelined_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ PipelinedPlan plan) {
  if constexpr (this_target_has(T::LEVEL)) pipelined_block<T>(p, plan, nullptr);
  else not_for_this_target();
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    strict_pipelined_tma_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ PipelinedPlan plan,
                                const __grid_constant__ CUtensorMap b_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  pipelined_block<T>(p, plan, &b_map);
#else
  not_for_this_target();
#endif
}

template <class T>
void count_tiles(const SgemmArgs& p, PipelinedPlan& plan) {
  plan.tile_rows = static_cast<unsigned>(ceil_div(p.m, T::BM));
  plan.tile_cols = static_cast<unsigned>(ceil_div(p.n, T::BN));
  plan.steps = static_cast<int>(ceil_div(p.k, T::BK));
  plan.tail = static_cast<int>(p.k - int64_t{plan.steps - 1} * T::BK);
  const unsigned each = T::TRIANGLE ? lower_tiles(plan.tile_rows, T::BN / T::BM) : plan.tile_rows * plan.tile_cols;
  plan.tiles = each * static_cast<unsigned>(p.batch) * plan.splits;
}

template <class T>
PipelinedPlan pipelined_plan(const SgemmArgs& p, const SplitKPlan& split_k) {
  const bool fours = T::BY_REGISTERS;
  PipelinedPlan plan{operand(p.a, p.a.cs, p.a.rs, fours * p.m), operand(p.b, p.b.rs, p.b.cs, fours * p.n)};
  plan.splits = static_cast<unsigned>(split_k.splits);
  plan.split_stride = split_k.stride(p);
  count_tiles<T>(p, plan);
  plan.c_by16 = aligned16(p.c);
  plan.one = 1.0f, plan.zero = 0;
  return plan;
}

// Whether the TMA variant computes it, with the map of B if so. The copy engine counts elements in 32 bits with a sign,
// and its rows follow one another: those of a broadcast or a reversed operand do not.
template <class T>
bool full_tiles(const SgemmArgs& p, const PipelinedPlan& plan, CUtensorMap& b_map) {
  constexpr int64_t most = 1 << 30;
  return p.batch == 1 && p.m % T::BM == 0 && p.n % T::BN == 0 && p.k % (T::BK * T::CLUSTER_K) == 0 && p.k > 0 &&
         std::max({p.m, p.n, p.k}) < most && plan.a.path == CopyPath::transposed && plan.b.path == CopyPath::by16 &&
         plan.b.ld >= p.n && plan.c_by16 &&
         tensor_map(b_map, p.b.data, p.k, p.n, plan.b.ld, T::BK, T::BN, CU_TENSOR_MAP_SWIZZLE_NONE);
}

// `b_map`: of a TMA variant.
template <class T, class... Map>
void launch_pipelined(const SgemmArgs& part, const PipelinedPlan& plan, unsigned blocks, const Context& ctx,
                      const Map&... b_map) {
  const LaunchShape shape{blocks, T::THREADS, T::SHARED_BYTES, T::CLUSTER_K};
  if constexpr (T::TMA) launch_kernel<strict_pipelined_tma_kernel<T>>(shape, ctx, part, plan, b_map...);
  else launch_kernel<strict_pipelined_kernel<T>>(shape, ctx, part, plan);
}

template <class T>
unsigned blocks_for(const PipelinedPlan& plan, const Context& ctx) {
  return T::PERSISTENT ? min(plan.tiles, static_cast<unsigned>(ctx.sm_count)) : plan.tiles * T::CLUSTER_K;
}

// With the tiles of the last wave shared out, where that pays.
template <PipelinedTile TILE, bool ALIGNED, bool LOWER = false, class... Map>
void launch_variant(const SgemmArgs& part, PipelinedPlan plan, const Context& ctx, const Map&... b_map) {
  using T = Pipelined<TILE, ALIGNED, false, LOWER>;
  count_tiles<T>(part, plan);
  const unsigned blocks = blocks_for<T>(plan, ctx);
  if constexpr (TILE.stream_k)
    if (schedule_stream_k<T>(part, TILE, plan, blocks, ctx))
      return launch_pipelined<Pipelined<TILE, ALIGNED, true, LOWER>>(part, plan, blocks, ctx, b_map...);
  launch_pipelined<T>(part, plan, blocks, ctx, b_map...);
}

// False where not all tiles are full.
template <PipelinedTile TILE>
bool launch_tma(const SgemmArgs& part, const PipelinedPlan& plan, const Context& ctx) {
  CUtensorMap b_map;
  if (!full_tiles<Pipelined<TILE>>(part, plan, b_map)) return false;
  launch_variant<TILE, true>(part, plan, ctx, b_map);
  return true;
}

template <PipelinedTile TILE, bool ALIGNED>
void launch_best_variant(const SgemmArgs& part, const PipelinedPlan& plan, const Context& ctx) {
  if constexpr (TILE.triangle)
    if (computes_triangle(part, TILE)) return launch_variant<TILE, ALIGNED, true>(part, plan, ctx);
  if constexpr (ALIGNED && TILE.tma_variant) {
    if constexpr (TILE.wide_stages > 0)
      if (launch_tma<TILE.wide_tma_tile()>(part, plan, ctx)) return;
    if (launch_tma<TILE.tma_tile()>(part, plan, ctx)) return;
  }
  launch_variant<TILE, ALIGNED>(part, plan, ctx);
}

template <PipelinedTile TILE>
void strict_pipelined(const SgemmArgs& p, const Context& ctx) {
  constexpr bool by_alignment = TILE.stages_go_on();  // there is a kernel for rows of C that are not aligned
  const SplitKPlan split_k = split_k_plan(p, TILE);
  const SgemmArgs part = begin_split_k(p, split_k, ctx);
  const PipelinedPlan plan = pipelined_plan<Pipelined<TILE>>(part, split_k);
  if (plan.c_by16 || !by_alignment) launch_best_variant<TILE, true>(part, plan, ctx);
  else launch_best_variant<TILE, !by_alignment>(part, plan, ctx);
  reduce_split_k(p, split_k, ctx);
}

}  // namespace fl
