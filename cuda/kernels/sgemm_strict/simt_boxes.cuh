// The kernels of simt_warps.cuh for whole tiles of one product whose rows of A, B and C are aligned: operands arrive in
// boxes by tensor maps, two to a slot.
//
// Below 500 rows and columns a third of the time went into the copies: a 16-byte one takes a multiprocessor 20 cycles
// for each of a warp, 25 bytes a cycle; boxes arrive at 100, as multiprocessors that want the same lines at the same
// time get them from one request. And the kernel is a third as long: every launch fetches its instructions anew.
//
// A box of A has rows of 64 bytes, whose four parts are swizzled by bits 1 and 2 of the row: eight rows that are read
// at once lie in 32 different banks.
#pragma once

#include <algorithm>

#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_strict/simt_warps.cuh"

namespace fl {

// S names the sizes as in simt_warps.cuh, and how many slots of KS a ring of BOXES has.
template <class S, bool IN_RUNS>
struct BoxTile : S {
  using S::TM, S::TN, S::KS, S::BOXES, S::KG, S::SPLIT;
  static constexpr bool WHOLE = true, RUNS = IN_RUNS;
  static constexpr int BM = 8 * TM, BN = 4 * TN, THREADS = 32 * KG, QUADS = BM * BN / 4;
  struct CopyA {
    static constexpr int LD = KS, BYTES = BM * LD * 4;
  };
  struct CopyB {
    static constexpr int LD = BN, BYTES = KS * LD * 4;
  };
  using Sum = CountedSum<SPLIT, QUADS>;
  static constexpr int SLOT = CopyA::BYTES + CopyB::BYTES, RING = BOXES * SLOT;  // of a warp
  static constexpr int INBOX = KG * RING, BARRIERS = INBOX + Sum::BYTES, SHARED = BARRIERS + KG * BOXES * 8;
  static_assert(KS == 16 && TN % 4 == 0, "four parts to a row of A, swizzled");
  static_assert(SLOT % 1024 == 0 && CopyA::BYTES % 512 == 0, "where a swizzle begins");
  static_assert(QUADS * 16 <= RING, "a warp's part takes the place of its ring");
  static_assert(2 * SHARED > 232448 && SHARED <= 232448);
};

struct BoxMaps {
  CUtensorMap a, b;
};

// One warp's slots: the first lane fills them.
template <class T>
struct BoxSlots {
  uint32_t ring, barriers;
  int row, col, k;

  __device__ __forceinline__ void prepare() const {
    for (int s = 0; s < T::BOXES; ++s) ptx::barrier_init(barriers + s * 8, 1);
    ptx::barrier_init_fence();
  }
  __device__ __forceinline__ void fill(const BoxMaps& maps, int slot) {
    const uint32_t to = ring + slot * T::SLOT, barrier = barriers + slot * 8;
    ptx::barrier_expect(barrier, T::SLOT);
    ptx::load_box(to, &maps.a, k, row, barrier);
    ptx::load_box(to + T::CopyA::BYTES, &maps.b, col, k, barrier);
    k += T::KS;
  }
};

// math.acc = the product over `count` slots, in ascending k. What is loaded behind the last of them is not used.
template <class T>
__device__ __forceinline__ void multiply_boxes(SliceMath<T>& math, BoxSlots<T>& slots, const BoxMaps& maps, int count,
                                               int lane_id) {
  constexpr int B_ROW = T::BN * 4;
  const Lane lane(lane_id);
  const uint32_t swizzle = lane.row / 2 % 4, a_at = lane.row * T::KS * 4, b_at = T::CopyA::BYTES + lane.col * 16;
  int now = 0;
  uint32_t phase = 0, slot = slots.ring, b = slot + b_at;
  ptx::barrier_wait(slots.barriers, phase);
  math.start(slot + a_at + swizzle * 16, b);
#pragma unroll 1
  for (int n = 0; n < count; ++n) {
#pragma unroll 1
    for (uint32_t part = 1; part < T::KS / 4; ++part, b += 4 * B_ROW)
      math.four_k(b, slot + a_at + (part ^ swizzle) * 16, b + 4 * B_ROW);
    const int next = now + 1 == T::BOXES ? 0 : now + 1;
    if (next == 0) phase ^= 1;
    slot = slots.ring + next * T::SLOT;
    if (n + 1 < count) ptx::barrier_wait(slots.barriers + next * 8, phase);
    math.four_k(b, slot + a_at + swizzle * 16, slot + b_at);
    if (n + T::BOXES < count) {
      __syncwarp();  // all lanes have read the slot
      if (lane_id == 0) slots.fill(maps, now);
    }
    now = next, b = slot + b_at;
    math.runs.slot_done(math.acc);
  }
  math.runs.end(math.acc);
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    simt_boxes_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ WarpPlan plan,
                      const __grid_constant__ BoxMaps maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, warp = t / 32, rank = static_cast<int>(blockIdx.x % T::SPLIT);
  const Tile tile = plan.grid.tile(blockIdx.x / T::SPLIT);
  const auto row = static_cast<int>(tile.row) * T::BM, col = static_cast<int>(tile.col) * T::BN;
  const auto slice = static_cast<int>(plan.slice), count = slice / T::KS;
  BoxSlots<T> slots{shared + warp * T::RING, shared + T::BARRIERS + warp * T::BOXES * 8, row, col,
                    (rank * T::KG + warp) * slice};
  const typename T::Sum cluster{shared + T::INBOX, rank};
  if (t == 0) {
    ptx::prefetch_map(&maps.a);
    ptx::prefetch_map(&maps.b);
  }
  if (warp == 0) cluster.prepare(t);
  if (t % 32 == 0) slots.prepare();
  __syncwarp();
  ptx::cluster_arrive();
  pdl_launch_next();
  pdl_wait();

  if (t % 32 == 0)
    for (int s = 0; s < min(T::BOXES, count); ++s) slots.fill(maps, s);
  __syncwarp();
  SliceMath<T> math;
  multiply_boxes(math, slots, maps, count, t % 32);
  __syncwarp();  // the warp's ring is free
  math.store(slots.ring, plan.one, t % 32);
  __syncthreads();
  sum_slices<T>(p, plan, corner(p, 0, row, col), cluster, shared, t);
#else
  not_for_this_target();
#endif
}

// The maps, if all is whole. The copy engine counts elements in 32 bits with a sign, and its rows follow one another:
// those of a broadcast or a reversed operand do not.
template <class T>
bool box_maps(BoxMaps& maps, const SgemmArgs& p, const WarpPlan& plan) {
  constexpr int64_t most = 1 << 30;
  return p.batch == 1 && p.m % T::BM == 0 && p.n % T::BN == 0 && p.k > 0 && plan.slice * T::KG * T::SPLIT == p.k &&
         std::max({p.m, p.n, p.k}) < most && plan.a.way == Way::by16 && plan.b.way == Way::by16 && plan.a.ld >= p.k &&
         plan.b.ld >= p.n && plan.c_by16 &&
         tensor_map(maps.a, p.a.data, p.m, p.k, plan.a.ld, T::BM, T::KS, CU_TENSOR_MAP_SWIZZLE_64B) &&
         tensor_map(maps.b, p.b.data, p.k, p.n, plan.b.ld, T::KS, T::BN, CU_TENSOR_MAP_SWIZZLE_NONE);
}

template <class S, bool RUNS>
void simt_boxes_or_warps(const SgemmArgs& p, const WarpPlan& plan, const Context& ctx) {
  using T = BoxTile<S, RUNS>;
  BoxMaps maps;
  if (!box_maps<T>(maps, p, plan)) return simt_warps<S, RUNS>(p, plan, ctx);
  launch_kernel<simt_boxes_kernel<T>>({plan.grid.blocks() * T::SPLIT, T::THREADS, T::SHARED, T::SPLIT}, ctx, p, plan,
                                      maps);
}

template <class S>
void simt_slices(const SgemmArgs& p, const Context& ctx) {
  const WarpPlan plan = warp_plan<S>(p);
  if (in_runs(p, S::KG * S::SPLIT)) simt_boxes_or_warps<S, true>(p, plan, ctx);
  else simt_boxes_or_warps<S, false>(p, plan, ctx);
}

}  // namespace fl
