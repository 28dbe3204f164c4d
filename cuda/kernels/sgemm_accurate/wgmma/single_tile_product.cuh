// Products of few tiles: one for each block, or for each cluster of blocks that share its k. At 512 and k = 1024 there
// are 64 tiles of 64x64, half as many as an H200 has multiprocessors, and half of k takes half of the time.
//
// The k of a tile is cut into parts, one for each warpgroup (or row of them): PARTS = blocks of the cluster times
// K_GROUPS. Each part stores an equal share of the tile. It gets the others' sums of that share through shared memory
// and adds them up, its own first and then in a fixed order: the bits do not depend on which of them is done when.
//
// The float32 fallback for terms that are rejected runs in this kernel: a launch of its own takes 0.8 us.
//
// More tiles than multiprocessors are computed too, in waves. They are slow, as nothing overlaps the ends of a tile,
// and are left to persistent blocks wherever those have the same bits.
#pragma once

#include "cuda/kernels/sgemm_accurate/fallback/fallback_tile.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/three_terms.cuh"

namespace fl {

struct SinglePlan {
  SingleProduct own;
  Fallback fallback;  // if the terms are rejected
  bool early;         // whether the next launch may start as soon as there is room
  SplitPlan of_two;   // of three terms before two: what they make of these unless two are rejected for certain
};

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    single_tile_kernel(const __grid_constant__ SinglePlan plan, const __grid_constant__ ThreeTermsBehind<T> three) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ BlockRange range;
  const ProductPlan& product = plan.own.product;
  bool wanted = true;
  if (product.check.previous) {
    pdl_wait();
    wanted = terms_wanted(product.check);
    if (!wanted && !(plan.fallback.wanted && *product.check.previous & STATUS_REJECTED)) return;
  }
  const Stages stages = begin_stages<T>(memory, range, 4 * T::M_GROUPS);
  ptx::touch(plan);
  const WarpgroupWork<T> work(product.k_blocks);
  TileCorner<int> corner = rasterize<T>(product, int(blockIdx.x) / T::CLUSTER_K, 0);
  asm volatile("" : "+r"(corner.row), "+r"(corner.col));  // two divisions, while the kernel before this one ends
  __syncthreads();
  if constexpr (T::CLUSTER_K > 1) ptx::cluster_meet();  // others write to this block once it has begun
  pdl_wait();
  if (plan.early) pdl_launch_next();
  bool cluster_met = false;
  if (!wanted) {
    if (threadIdx.x == 0) range.status = *product.check.previous;
  } else if (threadIdx.x < 128) {
    // Not by the warp that has made the barriers ready: 0.2 of 7.0 us at 512 and k = 1024, 0.1 of 11.9 at 1024.
    if (threadIdx.x == 96) produce_part<T>(product, corner, stages, work, range);
  } else {
    const unsigned status = check_range<T>(product, stages, range, min(work.count, T::STAGES));
    if (!(status & STATUS_ELSEWHERE)) {
      multiply_single<T>(plan.own, corner, stages, stages.tiles + T::PIPELINE_BYTES, work, status);
      cluster_met = true;
    }
  }
  if (T::CLUSTER_K > 1 && !cluster_met) ptx::cluster_meet();
  constexpr bool THREE = T::S::KIND == Terms::bf16x6;
  const bool makes_two = THREE && plan.of_two.groups > 0;
  if (!plan.fallback.wanted && !makes_two) return;
  __syncthreads();
  if (threadIdx.x >= FALLBACK_THREADS) return;
  if constexpr (THREE)
    if (makes_two && !(status_of(product.check.of_two(), range.of_two) & STATUS_REJECTED))
      for (unsigned group = blockIdx.x; group < plan.of_two.groups; group += gridDim.x) {
        if (group == 0 && threadIdx.x < 8) plan.of_two.taken[threadIdx.x] = 0;
        split_by_tile<Fp16Terms, LONGEST_PART, false>(plan.of_two, group, *reinterpret_cast<BehindTile*>(memory));
        __syncthreads();
      }
  if (!(range.status & STATUS_REJECTED) || !plan.fallback.wanted) return;
  // For racecheck alone, which counts the barriers that each warp has passed, whoever else was there: the warps that
  // check the range would be one ahead, and the fallback full of races between them and the others (docs/accuracy.md).
  if (threadIdx.x < 128) ptx::named_barrier<6, 128>();
  if constexpr (has_three_terms<T>)
    if (three_terms<TileBehind<T>>(three, memory, range)) return;
  fall_back<(T::LEFT_OUT > 0)>(plan.fallback, memory);
#else
  not_for_this_target();
#endif
}

// One tile for each cluster. Returns whether the float32 fallback is in the same kernel.
template <WgmmaTile TILE>
bool launch_single(const AccurateProduct& product) {
  using T = Wgmma<TILE>;
  const SgemmArgs& p = product.p;
  const SinglePlan plan{
      {ProductPlan(product, ceil_div(p.m, T::BM), ceil_div(p.n, T::BN), 8), aligned<4>(p.c.data, p.c.rs)},
      Fallback(rows_first(p), product.last),
      product.expectation.expected || product.expectation.beside,
      product.expectation.split_of_two ? *product.expectation.split_of_two : SplitPlan{}};
  const auto blocks = static_cast<unsigned>(plan.own.product.tile_rows * plan.own.product.tile_cols * T::CLUSTER_K);
  const int shared = std::max(T::SHARED_BYTES, TileBehind<T>::SHARED_BYTES);
  launch_kernel<single_tile_kernel<T>>({blocks, T::THREADS, shared, T::CLUSTER_K}, product.ctx, plan,
                                       three_terms_behind<T>(product));
  return product.last;
}

}  // namespace fl
