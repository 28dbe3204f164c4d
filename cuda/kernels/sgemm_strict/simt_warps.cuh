// Strict SGEMM for Hopper below 500 rows and columns: k is cut into one slice per warp, and every warp multiplies the
// whole tile of its block over its own slice.
//
// There is too little work here to fill the GPU with tiles, and what counts is the time from launch to the last store.
// A warp owns a ring of tiles that only it copies into and only it reads, so there is no barrier before the sums are
// added: over the KG warps in shared memory, then over the SPLIT blocks of a cluster in each other's shared memory,
// both in the order of k. Same inputs, same bits; no atomics, no workspace, no second kernel.
//
// A lies with k contiguous here: it arrives by 16-byte copies, and one read serves four k of a row. A fragment then has
// one register parity for a whole k, and in a model of the register banks an eighth to a fifth of the FMAs wait. Turned
// on the way in, as in simt_ring.cuh, they flow freely, but four times the copies cost more than that at 192 rows, and
// less at 384: 5.5 instead of 5.4 us, 11.9 instead of 12.1.
//
// One block to a multiprocessor, which is what the shared memory of these sizes comes to. With room for two it took
// half as long again; presumably both blocks of a cluster went to the same one, and others had none.
#pragma once

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemm_strict/simt_slice_math.cuh"

namespace fl {

// S names the sizes: TM TN KS (k of a ring slot) SLOTS KG SPLIT. IN_RUNS: each warp adds up runs of its slice
// (chains.h); a kernel of its own, since it takes twice the registers for sums.
template <class S, bool IN_RUNS>
struct WarpTile : S {
  static constexpr bool WHOLE = false, RUNS = IN_RUNS;
  using S::TM, S::TN, S::KS, S::SLOTS, S::KG, S::SPLIT;
  static constexpr int BM = 8 * TM, BN = 4 * TN, THREADS = 32 * KG;
  using CopyA = TileCopy<BM, KS, 32, Tail::of_columns>;
  using CopyB = TileCopy<KS, BN, 32, Tail::of_lines>;
  using Sum = CountedSum<SPLIT, BM * BN / 4>;
  static constexpr int QUADS = BM * BN / 4;
  static constexpr int SLOT = CopyA::BYTES + CopyB::BYTES, RING = SLOTS * SLOT;  // of a warp
  static constexpr int INBOX = KG * RING, SHARED = INBOX + Sum::BYTES;
  static_assert(QUADS * 16 + WarpStage::BYTES <= RING, "a warp's part takes the place of its ring, and its stage too");
  static_assert(TN % 4 == 0 && KS % 8 == 0 && 2 * SHARED > 232448 && SHARED <= 232448);
};

struct WarpPlan {
  Operand a, b;
  TileGrid grid;
  int64_t slice;  // of k, for each of the KG * SPLIT warps; a multiple of KS
  bool c_by16;
  float one;  // as in simt_ring.cuh: 1.0f, unknown to the compiler
};

// One warp's way along its slice of k.
template <class T>
struct WarpSlice {
  uint32_t ring;
  typename T::CopyA a;
  typename T::CopyB b;
  int64_t to_copy;
  int into = 0;

  // Starts the copies of the next slot; behind the end of the slice an empty group keeps the count of groups right.
  __device__ __forceinline__ void copy_next() {
    if (to_copy > 0) {
      const uint32_t slot = ring + into * T::SLOT;
      a.length = b.lines = k_left(to_copy, T::KS);
      a(slot);
      b(slot + T::CopyA::BYTES);
      a.next_columns();
      b.next_lines();
      to_copy -= T::KS;
      into = into + 1 == T::SLOTS ? 0 : into + 1;
    }
    ptx::commit_copies();
  }
};

// math.acc = the product over the slice, in ascending k. What is loaded behind its end is not used.
template <class T>
__device__ __forceinline__ void multiply_slice(SliceMath<T>& math, WarpSlice<T>& slice, int64_t count, Lane lane) {
  constexpr int A_ROW = T::CopyA::LD * 4, B_ROW = T::CopyB::LD * 4;
  const uint32_t a_at = lane.row * A_ROW, b_at = T::CopyA::BYTES + lane.col * 16;
  uint32_t slot = slice.ring, a = slot + a_at, b = slot + b_at;
  ptx::wait_copies<T::SLOTS - 2>();
  __syncwarp();  // all lanes' copies have arrived
  math.start(a, b);
#pragma unroll 1
  for (int64_t slots = ceil_div(count, T::KS); slots > 0; --slots) {
    __syncwarp();  // all lanes have read the slot before this one, which is filled now
    slice.copy_next();
#pragma unroll 1
    for (int k = 4; k < T::KS; k += 4, a += 16, b += 4 * B_ROW) math.four_k(b, a + 16, b + 4 * B_ROW);
    slot = slot == slice.ring + (T::SLOTS - 1) * T::SLOT ? slice.ring : slot + T::SLOT;
    ptx::wait_copies<T::SLOTS - 2>();
    __syncwarp();
    math.four_k(b, slot + a_at, slot + b_at);
    a = slot + a_at, b = slot + b_at;
    math.runs.slot_done(math.acc);
  }
  math.runs.end(math.acc);
}

// Adds the warps' parts, sends those of other blocks' shares of the tile to them, and stores what the block's own share
// comes to. The parts of that stay in registers.
template <class T>
__device__ __forceinline__ void sum_slices(const SgemmArgs& p, const WarpPlan& plan, const Corner& at,
                                           const typename T::Sum& cluster, uint32_t shared, int t) {
  constexpr int QUADS_EACH = (T::QUADS + T::THREADS - 1) / T::THREADS;
  const Lane lane(t % 32);
  const WarpStage stage{shared + t / 32 * T::RING + T::QUADS * 16};
  auto put = [&](int quad, float4 sum) {
    const int i = quad / 32 / (T::TN / 4), j = quad / 32 % (T::TN / 4);
    if (!T::WHOLE && !plan.c_by16) return stage.put(p, at, i * 8, 1, j * 16, t % 32, sum);
    const int row = i * 8 + lane.row, col = j * 16 + lane.col * 4;
    put4(p, at.c + row * p.c.rs + col, T::WHOLE ? 4 : row < at.rows ? at.cols - col : 0, sum);
  };
  float4 own[QUADS_EACH];
  ptx::cluster_wait();  // the other blocks have begun: their inboxes exist
#pragma unroll
  for (int i = 0; i < QUADS_EACH; ++i) {
    const int quad = t + i * T::THREADS;
    if (quad >= T::QUADS) continue;
    own[i] = ptx::load4(shared + quad * 16);
#pragma unroll
    for (int g = 1; g < T::KG; ++g) own[i] = add(own[i], ptx::load4(shared + g * T::RING + quad * 16));
    cluster.send(quad, own[i]);
  }
  cluster.wait();
#pragma unroll
  for (int i = 0; i < QUADS_EACH; ++i)
    if (const int quad = t + i * T::THREADS; quad < T::QUADS && cluster.owns(quad))
      put(quad, cluster.total(quad, own[i]));
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    simt_warps_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ WarpPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, warp = t / 32, rank = static_cast<int>(blockIdx.x % T::SPLIT);
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(blockIdx.x / T::SPLIT);
  const int64_t first = (rank * T::KG + warp) * plan.slice, count = min(plan.slice, p.k - first);
  const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
  WarpSlice<T> slice{shared + warp * T::RING,
                     {plan.a, first_of(plan.a, tile.batch, row, first), minus_zeros, t % 32},
                     {plan.b, first_of(plan.b, tile.batch, first, col), plus_zeros, t % 32},
                     count};
  slice.a.lines = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  slice.b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  const typename T::Sum cluster{shared + T::INBOX, rank};
  if (warp == 0) cluster.prepare(t);
  ptx::cluster_arrive();
  pdl_launch_next();
  pdl_wait();

#pragma unroll 1
  for (int s = 0; s < T::SLOTS - 1; ++s) slice.copy_next();
  SliceMath<T> math;
  multiply_slice(math, slice, count, lane);

  ptx::wait_copies<0>();
  __syncwarp();  // the warp's ring is free
  math.store(slice.ring, plan.one, t % 32);
  __syncthreads();
  sum_slices<T>(p, plan, corner(p, tile.batch, row, col), cluster, shared, t);
#else
  not_for_this_target();
#endif
}

template <class S>
WarpPlan warp_plan(const SgemmArgs& p) {
  using T = WarpTile<S, false>;
  return {operand(p.a, p.a.rs, p.a.cs),
          operand(p.b, p.b.rs, p.b.cs),
          TileGrid(p.m, p.n, p.batch, T::BM, T::BN),
          slice_of(p.k, T::KG * T::SPLIT),
          aligned16(p.c),
          1.0f};
}

template <class S, bool RUNS>
void simt_warps(const SgemmArgs& p, const WarpPlan& plan, const Context& ctx) {
  using T = WarpTile<S, RUNS>;
  static_assert(T::KS == 16, "as slice_of() has it");
  launch_kernel<simt_warps_kernel<T>>({plan.grid.blocks() * T::SPLIT, T::THREADS, T::SHARED, T::SPLIT}, ctx, p, plan);
}

}  // namespace fl
