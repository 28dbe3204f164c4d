// Strict SGEMM for Hopper below 500 rows and columns: k is cut into one slice per warp, and every warp multiplies the
// whole tile of its block over its own slice.
//
// There is too little work here to fill the GPU with tiles, and what counts is the time from launch to the last store.
// A warp owns a ring of tiles that only it copies into and only it reads, so there is no barrier before the sums are
// added: over the KG warps in shared memory, then over the SPLIT blocks of a cluster in each other's shared memory,
// both in the order of k. Same inputs, same bits; no atomics, no workspace, no second kernel.
//
// A lies with k contiguous here: it arrives by 16-byte copies, and one read serves four k of a row. A fragment then has
// one register parity for a whole k, and in a model of the register banks a fifth to a quarter of the FMAs wait. Turned
// on the way in, as in simt_ring.cuh, they flow freely, but four times the copies cost more than that at 192 rows, and
// less at 384: 5.5 instead of 5.4 us, 11.9 instead of 12.1.
//
// One block to a multiprocessor, which is what the shared memory of these sizes comes to. With room for two it took
// half as long again; presumably both blocks of a cluster went to the same one, and others had none.
#pragma once

#include "cluster_launch.cuh"
#include "simt_tile.cuh"

namespace fl {

// S names the sizes: TM TN KS (k of a ring slot) SLOTS KG SPLIT.
template <class S>
struct WarpTile : S {
  using S::TM, S::TN, S::KS, S::SLOTS, S::KG, S::SPLIT;
  static constexpr int BM = 8 * TM, BN = 4 * TN, THREADS = 32 * KG;
  using CopyA = TileCopy<BM, KS, 32, Tail::of_columns>;
  using CopyB = TileCopy<KS, BN, 32, Tail::of_lines>;
  using Sum = ClusterSum<SPLIT, BM * BN / 4>;
  static constexpr int QUADS = BM * BN / 4;
  static constexpr int SLOT = CopyA::BYTES + CopyB::BYTES;
  static constexpr int RING = KG * SLOTS * SLOT, PARTS = KG * QUADS * 16;
  static constexpr int INBOX = RING > PARTS ? RING : PARTS, SHARED = INBOX + Sum::BYTES;
  static_assert(PARTS + KG * WarpStage::BYTES <= RING, "unaligned results are staged behind the parts");
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

// acc += the product of the slot's tiles, in ascending k.
template <class T>
__device__ __forceinline__ void multiply_slot(float (&acc)[T::TM][T::TN], uint32_t slot, Lane lane) {
  constexpr int A_ROW = T::CopyA::LD * 4, B_ROW = T::CopyB::LD * 4;
  uint32_t a = slot + lane.row * A_ROW, b = slot + T::CopyA::BYTES + lane.col * 16;
#pragma unroll
  for (int k = 0; k < T::KS; k += 4, a += 16, b += 4 * B_ROW) {
    float4 a_rows[T::TM];
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a_rows[i] = ptx::load4(a + i * 8 * A_ROW);
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      float a_frag[T::TM], b_frag[T::TN];
#pragma unroll
      for (int i = 0; i < T::TM; ++i) a_frag[i] = component(a_rows[i], l);
#pragma unroll
      for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], ptx::load4(b + l * B_ROW + j * 16));
      outer_product(acc, a_frag, b_frag);
    }
  }
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
  WarpSlice<T> slice{shared + warp * T::SLOTS * T::SLOT,
                     {plan.a, first_of(plan.a, tile.batch, row, first), minus_zeros, t % 32},
                     {plan.b, first_of(plan.b, tile.batch, first, col), plus_zeros, t % 32},
                     count};
  slice.a.lines = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  slice.b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  if constexpr (T::SPLIT > 1) ptx::cluster_arrive();
  ptx::grid_release();
  ptx::grid_wait();

#pragma unroll
  for (int s = 0; s < T::SLOTS - 1; ++s) slice.copy_next();
  float acc[T::TM][T::TN] = {};
  int slot = 0;
#pragma unroll 1
  for (int64_t k = 0; k < count; k += T::KS) {
    ptx::wait_copies<T::SLOTS - 2>();
    __syncwarp();  // all lanes' copies have arrived, and all lanes have read the slot that is filled next
    slice.copy_next();
    multiply_slot<T>(acc, slice.ring + slot * T::SLOT, lane);
    slot = slot + 1 == T::SLOTS ? 0 : slot + 1;
  }

  __syncthreads();  // the rings are free: the parts take their place
#pragma unroll
  for (int i = 0; i < T::TM; ++i)
#pragma unroll
    for (int j = 0; j < T::TN; j += 4)
      ptx::store4(shared + ((warp * T::TM * T::TN / 4 + (i * T::TN + j) / 4) * 32 + t % 32) * 16,
                  {plan.one * acc[i][j], plan.one * acc[i][j + 1], plan.one * acc[i][j + 2], plan.one * acc[i][j + 3]});
  __syncthreads();
  const Corner at = corner(p, tile.batch, row, col);
  const typename T::Sum cluster{shared + T::INBOX, rank};
  const WarpStage stage{shared + T::PARTS + warp * WarpStage::BYTES};
  auto put = [&](int quad, float4 sum) {
    const int i = quad / 32 / (T::TN / 4), j = quad / 32 % (T::TN / 4);
    if (!plan.c_by16) return stage.put(p, at, i * 8, 1, j * 16, t % 32, sum);
    const int row = i * 8 + lane.row, col = j * 16 + lane.col * 4;
    put4(p, at.c + row * p.c.rs + col, row < at.rows ? at.cols - col : 0, sum);
  };
  if constexpr (T::SPLIT > 1) ptx::cluster_wait();  // the other blocks have begun: their inboxes exist
  for (int quad = t; quad < T::QUADS; quad += T::THREADS) {
    float4 sum = ptx::load4(shared + quad * 16);
#pragma unroll
    for (int g = 1; g < T::KG; ++g) sum = add(sum, ptx::load4(shared + (g * T::QUADS + quad) * 16));
    if constexpr (T::SPLIT > 1) cluster.scatter(quad, sum);
    else put(quad, sum);
  }
  if constexpr (T::SPLIT > 1) {
    ptx::cluster_arrive();
    ptx::cluster_wait();
    for (int mine = t; mine < T::Sum::SHARE; mine += T::THREADS) put(cluster.quad(mine), cluster.gather(mine));
  }
#endif
}

template <class T>
void simt_warps(const SgemmArgs& p, const Context& ctx) {
  static std::atomic<uint64_t> raised{0};
  const WarpPlan plan{operand(p.a, p.a.rs, p.a.cs),
                      operand(p.b, p.b.rs, p.b.cs),
                      TileGrid(p.m, p.n, p.batch, T::BM, T::BN),
                      ceil_div(ceil_div(p.k, T::KS), T::KG * T::SPLIT) * T::KS,
                      by16(p.c),
                      1.0f};
  launch_overlapping(simt_warps_kernel<T>, {plan.grid.blocks() * T::SPLIT, T::THREADS, T::SHARED, T::SPLIT},
                     stream(ctx), raised, p, plan);
}

}  // namespace fl
