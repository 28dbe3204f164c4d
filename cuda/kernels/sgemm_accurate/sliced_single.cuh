// Products of few tiles: one for each block, or for each cluster of blocks that share its k. At 512 and k = 1024 there
// are 64 tiles of 64x64 for 132 multiprocessors, and half of k takes half of the time.
//
// The k of a tile is cut into parts, one for each warpgroup (or row of them): PARTS = blocks of the cluster times
// K_GROUPS. Each part owns an equal share of the tile. It gets the others' sums of that share through shared memory and
// adds them up, its own first and then in a fixed order: the bits do not depend on which of them is done when.
//
// What stands by for refused slices runs in this kernel: a launch of its own takes 0.8 us.
#pragma once

#include "cuda/kernels/sgemm_accurate/sliced_quads.cuh"

namespace fl {

template <class T>
__device__ __forceinline__ void fill_share(const ProductPlan& plan, int tile, const Stages& stages,
                                           const PartShare<T>& share, const VerdictShared& guard) {
  TileSource<T> source(plan, tile, 0, share.from);
  StageCursor<T> at;
  for (int i = 0; i < share.count; ++i, at.next()) {
    if (i == T::STAGES) {
      ptx::barrier_wait(stages.decided, 0);
      if (guard.verdict & VERDICT_REFUSED) return;
    }
    source.fill(stages, 0, at);
  }
}

template <class T>
__device__ __forceinline__ void multiply_share(float (&acc)[T::BN / 2], const Stages& stages, const PartShare<T>& share,
                                               GivenBack<typename T::S> back) {
  // The stages of this warpgroup: those of the whole block would be a number of its own for each warp, and the compiler
  // would move every address from there to where the products want it.
  const Stages own{stages.tiles + share.k_group * T::STAGE_BYTES, stages.full + 8 * share.k_group,
                   stages.empty + 8 * share.k_group, 0};
  const StageTiles<T> operands(own, share.m_group);
  float sum[T::BN / 2];
  StageCursor<T> at;
  if (T::TURNS && share.k_group == 1) ptx::turn_pass(2, 256);
  for (int i = 0; i < share.count - share.k_group; i += T::K_GROUPS) {
    ptx::barrier_wait(own.full + 8 * at.stage, at.parity);
    if (T::TURNS) ptx::turn_wait(2 + share.k_group, 256);
    ptx::wgmma_fence();
    operands.multiply(sum, at.stage, 0);
    ptx::wgmma_commit();
    if (T::TURNS) ptx::turn_pass(3 - share.k_group, 256);
    ptx::wgmma_wait_all();
    ptx::written(sum);
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(own.empty + 8 * at.stage);
#pragma unroll
    for (int j = 0; j < T::BN / 2; ++j) acc[j] = fmaf(sum[j], back.now(), acc[j]);
    back.next();
#pragma unroll
    for (int j = 0; j < T::K_GROUPS; ++j) at.next();
  }
}

// Of two parts the one that keeps the upper half of the sums is known when the kernel runs. Selections: with branches
// the compiler puts all sums into memory and finds them there by an index.
template <class T>
__device__ __forceinline__ void exchange_halves(float4 (&mine)[T::QUADS], const float (&acc)[T::BN / 2], uint32_t inbox,
                                                const PartShare<T>& share) {
  const bool upper = share.part == 1;
  auto pick = [](bool second, const float4& x, const float4& y) {
    return float4{second ? y.x : x.x, second ? y.y : x.y, second ? y.z : x.z, second ? y.w : x.w};
  };
  uint32_t to = inbox + (upper ? 0 : T::K_GROUPS - 1) * T::SLOT_BYTES + threadIdx.x % T::PART_THREADS * 16;
  if constexpr (T::BLOCKS > 1) to = ptx::address_in(upper ? 0 : 1, to);
#pragma unroll
  for (int i = 0; i < T::QUADS; ++i, to += T::PART_THREADS * 16) {
    const float4 low = Quad<T>::of(acc, i), high = Quad<T>::of(acc, T::QUADS + i);
    mine[i] = pick(upper, low, high);
    if constexpr (T::BLOCKS > 1) ptx::store4_cluster(to, pick(upper, high, low));
    else ptx::store4(to, pick(upper, high, low));
  }
}

// Keeps the part's own share of the sums in `mine` and sends the rest to its owners. Every block has begun.
template <class T>
__device__ __forceinline__ void hand_out(float4 (&mine)[T::QUADS], const float (&acc)[T::BN / 2], uint32_t inbox,
                                         const PartShare<T>& share) {
  const unsigned thread = threadIdx.x % T::PART_THREADS;
#pragma unroll
  for (int owner = 0; owner < T::PARTS; ++owner) {
    if (owner == share.part) {
#pragma unroll
      for (int i = 0; i < T::QUADS; ++i) mine[i] = Quad<T>::of(acc, owner * T::QUADS + i);
      continue;
    }
    const int slot = (share.part - owner + T::PARTS) % T::PARTS - 1 + owner % T::K_GROUPS * (T::PARTS - 1);
    uint32_t to = inbox + slot * T::SLOT_BYTES + thread * 16;
    if constexpr (T::BLOCKS > 1) to = ptx::address_in(owner / T::K_GROUPS, to);
#pragma unroll
    for (int i = 0; i < T::QUADS; ++i) {
      const float4 x = Quad<T>::of(acc, owner * T::QUADS + i);
      if constexpr (T::BLOCKS > 1) ptx::store4_cluster(to + i * T::PART_THREADS * 16, x);
      else ptx::store4(to + i * T::PART_THREADS * 16, x);
    }
  }
}

template <class T>
__device__ __forceinline__ void add_parts(float4 (&mine)[T::QUADS], uint32_t inbox, const PartShare<T>& share) {
  const uint32_t from = inbox + share.k_group * (T::PARTS - 1) * T::SLOT_BYTES + threadIdx.x % T::PART_THREADS * 16;
#pragma unroll
  for (int slot = 0; slot < T::PARTS - 1; ++slot)
#pragma unroll
    for (int i = 0; i < T::QUADS; ++i) {
      const float4 x = ptx::load4(from + slot * T::SLOT_BYTES + i * T::PART_THREADS * 16);
      mine[i].x += x.x, mine[i].y += x.y, mine[i].z += x.z, mine[i].w += x.w;
    }
}

template <class T>
__device__ __forceinline__ void multiply_single(const SinglePlan& plan, const Stages& stages, uint32_t inbox,
                                                const PartShare<T>& share, unsigned verdict) {
  const QuadWriter<T> writer(plan, share);
  float acc[T::BN / 2] = {};
  multiply_share<T>(acc, stages, share, GivenBack<typename T::S>(verdict));
  float4 mine[T::QUADS];
  if constexpr (T::PARTS == 2) exchange_halves<T>(mine, acc, inbox, share);
  else hand_out<T>(mine, acc, inbox, share);
  if constexpr (T::PARTS > 1) {
    if constexpr (T::BLOCKS > 1) ptx::cluster_meet();
    else ptx::turn_wait(7, T::MATH_THREADS);
    add_parts<T>(mine, inbox, share);
  }
  writer.write(mine, verdict & VERDICT_WIDE);
}

// First thing in a kernel: the barriers of the stages in `memory`.
template <class T>
__device__ __forceinline__ Stages begin_stages(const char* memory, VerdictShared& guard) {
  const uint32_t shared = (ptx::shared_address(memory) + 1023) & ~1023u;
  constexpr int FULL = T::BARRIERS, EMPTY = FULL + 8 * T::STAGES, DECIDED = EMPTY + 8 * T::STAGES;
  const Stages stages{shared, shared + FULL, shared + EMPTY, shared + DECIDED};
  if (threadIdx.x == 0) {
    guard = {};
    for (int s = 0; s < T::STAGES; ++s) {
      ptx::barrier_init(stages.full + 8 * s, 1);
      ptx::barrier_init(stages.empty + 8 * s, 4 * T::M_GROUPS);
    }
    ptx::barrier_init(stages.decided, 1);
    ptx::barrier_init_fence();
  }
  return stages;
}

// For each order of the operands a kernel of its own: the less code one has, the less it waits for instructions.
template <class T, bool TA, bool TB>
__global__ void __launch_bounds__(T::THREADS, 1) sliced_single_kernel(const __grid_constant__ SinglePlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ VerdictShared guard;
  const Stages stages = begin_stages<T>(memory, guard);
  ptx::touch(plan);
  __syncthreads();
  if constexpr (T::BLOCKS > 1) ptx::cluster_meet();  // others write to this block once it has begun
  pdl_wait();
  if (!wanted(plan.product.guard)) return;
  const PartShare<T> share(plan.product.k_blocks);
  bool met = false;
  if (threadIdx.x < 128) {
    // Not by the warp that has made the barriers ready: 0.2 of 7.0 us at 512 and k = 1024, 0.1 of 11.9 at 1024.
    if (threadIdx.x == 96) fill_share<T>(plan.product, blockIdx.x / T::BLOCKS, stages, share, guard);
  } else {
    const unsigned verdict = decide<T>(plan.product, stages, guard, min(share.count, T::STAGES));
    if (!(verdict & VERDICT_REFUSED)) {
      multiply_single<T>(plan, stages, stages.tiles + T::INBOX, share, verdict);
      met = true;
    }
  }
  if (T::BLOCKS > 1 && !met) ptx::cluster_meet();
  if (!plan.falls_back) return;
  __syncthreads();
  if (!(guard.verdict & VERDICT_REFUSED) || threadIdx.x >= FALLBACK_THREADS) return;
  // For racecheck alone, which counts the barriers that each warp has passed, whoever else was there: the warps that
  // decide would be one ahead, and the stand-in full of races between them and the others (docs/accuracy.md).
  if (threadIdx.x < 128) ptx::named_barrier<6, 128>();
  for (unsigned tile = blockIdx.x; tile < plan.grid.total; tile += gridDim.x)
    fallback_tile<TA, TB>(plan.args, block_tile<FALLBACK_BM, FALLBACK_BM>(plan.args, plan.grid, tile), plan.by16,
                          *reinterpret_cast<FallbackShared*>(memory));
#else
  not_for_this_target();
#endif
}

}  // namespace fl
