// Strict SGEMM for Hopper from 500 rows and columns up: four warps copy, eight warps multiply, and a ring of tiles with
// two barriers per slot lies between them.
//
// Why the roles are split: an FMA takes an issue slot of its own, so whatever else the multiplying warps issue is lost.
// They issue fragment loads and FMAs only. setmaxnreg moves the copying warps' registers to them: 168 each at the
// start, then 56 and 224.
//
// The eight warps form KG groups of WM x WN warps; each group takes every KG-th step of BK along k for the whole tile,
// and the groups' sums are added in shared memory in the order of the groups. SPLIT blocks of a cluster may share k as
// well, in contiguous ranges. With KG = SPLIT = 1 every output is one chain of FMAs in ascending k, and the grid is
// persistent: copies for the next tile start while this one is stored.
//
// What bounds it: a 16-byte read of shared memory costs the issuing partition about as many cycles as it writes
// registers, so a TM x TN thread tile can reach TM*TN / (TM*TN + TM + TN) of peak: 84.2 % at 8 x 16, 85.7 % at 12 x 12.
// A is stored with m contiguous because a fragment along k keeps its register's parity through a whole k step, which
// costs bank conflicts in the register file (in a prototype 48 instead of 52 TFLOP/s).
#pragma once

#include <algorithm>

#include "cuda/kernels/common/sum_splits.cuh"
#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_strict/simt_ring_share.cuh"
#include "cuda/kernels/sgemm_strict/simt_ring_store.cuh"

namespace fl {

// Each of TEAMS teams of warps fills every TEAMS-th slot. What a slot costs beside its copies is paid by one team;
// where tiles are narrow that is what bounds the copies, since the scheduler lets multiplying warps go first.
template <class T>
__device__ __forceinline__ void copy_tiles(const SgemmArgs& p, const RingPlan& plan, const CUtensorMap* b_map,
                                           uint32_t shared, int rank, int t) {
  const int team = T::TEAMS > 1 ? t / T::TEAM : 0;
  if constexpr (T::TEAMS > 1) t %= T::TEAM;
  if (T::WHOLE && t == 0) ptx::prefetch_map(b_map);
  Ring<T> ring{shared, team, 1};
  for (unsigned number = first_piece<T>(); number < end_of_pieces<T>(plan); number += to_next_piece<T>()) {
    const Piece piece = piece_of<T>(plan, rank, number);
    if (!piece.exists) continue;
    const Steps steps = piece.steps;
    const Tile tile = ring_tile<T>(plan, piece.tile);
    const int64_t row = tile.row * T::BM, col = tile.col * T::BN, k = int64_t{steps.first + team} * T::BK;
    TileCopy<T::BK, T::BM, T::TEAM, Tail::of_lines, T::TEAMS, T::WHOLE> a(plan.a, first_of(plan.a, tile.batch, k, row),
                                                                          minus_zeros, t);
    TileCopy<T::BK, T::BN, T::TEAM, Tail::of_lines, T::TEAMS> b(plan.b, first_of(plan.b, tile.batch, k, col),
                                                                plus_zeros, t);
    a.length = static_cast<int>(min(p.m - row, int64_t{T::BM}));
    b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
    pdl_wait();  // not sooner: all that comes before it overlaps the end of the kernel before
#pragma unroll 1
    for (int step = steps.count - team; step > 0; step -= T::TEAMS) {
      if (!T::WHOLE && step == 1 && steps.first + steps.count == plan.steps) a.lines = b.lines = plan.tail;
      ptx::barrier_wait(ring.empty(), ring.phase);
      if constexpr (T::WHOLE) {
        static_assert(T::TEAMS == 1, "every copying warp sees every slot");
        if (t == step % 4 * 32) {  // the warps take turns: to start a box takes one about 100 cycles
          ptx::barrier_expect_more(ring.full(), T::BK * T::BN * 4);
          ptx::load_box(ring.tiles() + T::a_bytes(), b_map, static_cast<int>(col),
                        (steps.first + steps.count - step) * T::BK, ring.full());
        }
      } else {
        b(ring.tiles() + T::a_bytes());
        b.next_lines(T::TEAMS);
      }
      a(ring.tiles());
      a.next_lines(T::TEAMS);
      ptx::barrier_arrive_after_copies(ring.full());
      ring.template advance<T::TEAMS>();
    }
  }
}

template <class T>
__device__ __forceinline__ void multiply_tiles(const SgemmArgs& p, const RingPlan& plan, uint32_t shared, int rank,
                                               int t) {
  const int warp = t % T::group_threads() / 32, group = T::group_of(t);
  const Lane lane = lane_of<T>(t % 32);
  WarpMath<T> math;
  math.ring = {shared, group, 0};
  math.a_offset = (warp / T::WN * T::LANE_ROWS * T::TM + lane.row * 4) * 4;
  math.b_offset = T::a_bytes() + (warp % T::WN * T::LANE_COLS * T::TN + lane.col * 4) * 4;
  for (unsigned number = first_piece<T>(); number < end_of_pieces<T>(plan); number += to_next_piece<T>()) {
    const Piece piece = piece_of<T>(plan, rank, number);
    if (!piece.exists) continue;
    if (T::SHARED && piece.upper) SavedSums<T>::load(plan, math);
    else math.zero();
    math.multiply(plan, piece.steps, group);
    if (T::SHARED && piece.lower) {
      SavedSums<T>::save(plan, math);
      continue;
    }
    const Tile tile = ring_tile<T>(plan, piece.tile);
    Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
    if constexpr (T::CUT) at.c += piece.tile % plan.splits * plan.split_stride;
    if constexpr (T::persistent()) store<T>(p, math, at);
    else sum_and_store<T>(p, plan, math, at, rank, t);
  }
}

template <class T>
__device__ __forceinline__ void ring_block(const SgemmArgs& p, const RingPlan& plan, const CUtensorMap* b_map) {
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, rank = static_cast<int>(blockIdx.x % T::SPLIT);
  if (t < T::SLOTS) {
    ptx::barrier_init(shared + T::barriers() + t * 16, T::TEAM);
    ptx::barrier_init(shared + T::barriers() + t * 16 + 8, T::group_threads());
    ptx::barrier_init_fence();
  }
  __syncthreads();
  pdl_launch_next();
  if constexpr (T::SPLIT > 1) ptx::cluster_arrive();
  if (t >= T::math_threads()) {
    ptx::registers_down<T::COPY_REGISTERS>();
    copy_tiles<T>(p, plan, b_map, shared, rank, t - T::math_threads());
    ptx::wait_copies<0>();
    if constexpr (T::SPLIT > 1) {
      ptx::cluster_wait();
      ptx::cluster_arrive();
      ptx::cluster_wait();
    }
  } else {
    ptx::registers_up<T::FULL_REGISTERS>();
    pdl_wait();
    multiply_tiles<T>(p, plan, shared, rank, t);
  }
}

template <class T>
__global__ void __launch_bounds__(T::threads(), 1)
    simt_ring_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ RingPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  ring_block<T>(p, plan, nullptr);
#else
  not_for_this_target();
#endif
}

template <class T>
__global__ void __launch_bounds__(T::threads(), 1)
    simt_ring_boxes_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ RingPlan plan,
                           const __grid_constant__ CUtensorMap b_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  ring_block<T>(p, plan, &b_map);
#else
  not_for_this_target();
#endif
}

template <class T>
void count_tiles(const SgemmArgs& p, RingPlan& plan) {
  plan.tile_rows = static_cast<unsigned>(ceil_div(p.m, T::BM));
  plan.tile_cols = static_cast<unsigned>(ceil_div(p.n, T::BN));
  plan.tiles = plan.tile_rows * plan.tile_cols * static_cast<unsigned>(p.batch) * plan.splits;
}

template <class T>
RingPlan ring_plan(const SgemmArgs& p, const CutPlan& cut) {
  RingPlan plan{operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs)};
  plan.splits = static_cast<unsigned>(cut.splits);
  plan.split_stride = p.batch * p.m * cut.ld;
  count_tiles<T>(p, plan);
  plan.steps = static_cast<int>(ceil_div(p.k, T::BK));
  plan.tail = static_cast<int>(p.k - int64_t{plan.steps - 1} * T::BK);
  plan.c_by16 = aligned16(p.c);
  plan.one = 1.0f;
  return plan;
}

// Whether WHOLE holds for all tiles, with the map of B if so. The copy engine counts elements in 32 bits with a sign,
// and its rows follow one another: those of a broadcast or a reversed operand do not.
template <class T>
bool all_whole(const SgemmArgs& p, const RingPlan& plan, CUtensorMap& b_map) {
  constexpr int64_t most = 1 << 30;
  return p.batch == 1 && p.m % T::BM == 0 && p.n % T::BN == 0 && p.k % (T::BK * T::SPLIT) == 0 && p.k > 0 &&
         std::max({p.m, p.n, p.k}) < most && plan.a.way == Way::turned && plan.b.way == Way::by16 && plan.b.ld >= p.n &&
         plan.c_by16 && tensor_map(b_map, p.b.data, p.k, p.n, plan.b.ld, T::BK, T::BN, CU_TENSOR_MAP_SWIZZLE_NONE);
}

template <class T>
void launch_ring(const SgemmArgs& part, const RingPlan& plan, unsigned blocks, const Context& ctx) {
  static_assert(T::valid());
  launch_kernel<simt_ring_kernel<T>>({blocks, T::threads(), T::shared_bytes(), T::SPLIT}, ctx, part, plan);
}

// False where not all is whole.
template <class T>
bool launch_whole(const SgemmArgs& part, RingPlan plan, const Context& ctx) {
  static_assert(T::WHOLE && T::valid());
  CUtensorMap b_map;
  if (!all_whole<T>(part, plan, b_map)) return false;
  count_tiles<T>(part, plan);
  const unsigned all = plan.tiles * T::SPLIT, most = static_cast<unsigned>(ctx.sm_count);
  launch_kernel<simt_ring_boxes_kernel<T>>(
      {T::persistent() ? min(all, most) : all, T::threads(), T::shared_bytes(), T::SPLIT}, ctx, part, plan, b_map);
  return true;
}

template <class S, bool ALIGNED>
void launch_ring(const SgemmArgs& part, RingPlan plan, const Context& ctx) {
  using T = RingTile<S, ALIGNED>;
  unsigned blocks = plan.tiles * T::SPLIT;
  if constexpr (T::persistent()) blocks = min(plan.tiles, static_cast<unsigned>(ctx.sm_count));
  if constexpr (S::SHARES) {
    if (share_tiles<T>(part, plan, blocks, ctx))
      return launch_ring<RingTile<S, ALIGNED, true>>(part, plan, blocks, ctx);
  }
  if constexpr (ALIGNED && S::SQUARES) {
    if constexpr (S::WIDE_SLOTS > 0)
      if (launch_whole<RingTile<S, true, false, true, true>>(part, plan, ctx)) return;
    if (launch_whole<RingTile<S, true, false, true>>(part, plan, ctx)) return;
  }
  launch_ring<T>(part, plan, blocks, ctx);
}

template <class S>
void simt_ring(const SgemmArgs& p, const Context& ctx) {
  using T = RingTile<S>;
  const CutPlan cut = T::CUT ? cut_plan(p, T::BM, T::BN, T::KG) : CutPlan{1, 0};
  SgemmArgs part = p;
  float* sums = static_cast<float*>(ctx.workspace);
  if (cut.splits > 1) part.alpha = 1.0f, part.beta = 0.0f, part.c = {sums, cut.ld, 1, p.m * cut.ld};
  const RingPlan plan = ring_plan<T>(part, cut);
  if (plan.c_by16 || !T::persistent()) launch_ring<S, true>(part, plan, ctx);
  else launch_ring<S, !T::persistent()>(part, plan, ctx);
  if (cut.splits > 1) sum_splits(p, cut.splits, sums, cut.ld, ctx);
}

}  // namespace fl
