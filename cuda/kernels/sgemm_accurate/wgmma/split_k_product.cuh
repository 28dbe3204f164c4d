// Split-K, for products of few tiles and a long k: each block takes a part of the k of a tile and stores its sums in
// the workspace, and a second kernel adds those up (split_k_reduction.cu). At 256 rows and columns there are but four
// tiles of 128x128 for all multiprocessors.
#pragma once

#include "cuda/kernels/sgemm_accurate/wgmma/tile_part.cuh"

namespace fl {

struct SplitKProductPlan {
  ProductPlan product;
  SplitKSums to;
};

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1) split_k_kernel(const __grid_constant__ SplitKProductPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ RangeShared range;
  const Stages stages = begin_stages<T>(memory, range, 4 * T::M_GROUPS);
  ptx::touch(plan);
  __syncthreads();
  pdl_wait();
  if (!terms_wanted(plan.product.check)) return;
  // Blocks that run at a time read the same part of k of many tiles.
  const int tiles = plan.product.tile_rows * plan.product.tile_cols;
  const int tile = int(blockIdx.x) % tiles, part = int(blockIdx.x) / tiles;
  const WarpgroupWork<T> work(plan.product.k_blocks, part, plan.to.parts);
  if (threadIdx.x < 128) {
    if (threadIdx.x == 0) produce_part<T>(plan.product, tile, stages, work, range);
    return;
  }
  const unsigned status = check_range<T>(plan.product, stages, range, min(work.count, T::STAGES));
  if (status & STATUS_REJECTED) return;
  float acc[T::BN / 2] = {};
  multiply_part<T>(acc, stages, work, typename T::Compensation(status));
  store_sums<T>(plan.to, rasterize<T>(plan.product, tile, 0), work, acc);
#else
  not_for_this_target();
#endif
}

template <WgmmaTile TILE>
void launch_split_k(const AccurateProduct& product, const AccurateSplitK& split_k) {
  using T = Wgmma<TILE>;
  static_assert(T::BM == ACCURATE_SPLIT_K_TILE && T::BN == ACCURATE_SPLIT_K_TILE);
  const SplitKProductPlan plan{ProductPlan(product, split_k.rows / T::BM, split_k.ld / T::BN, 8),
                               {product.at.sums, split_k.count, split_k.ld, split_k.rows * split_k.ld}};
  const auto blocks = static_cast<unsigned>(plan.product.tile_rows * plan.product.tile_cols * split_k.count);
  launch_kernel<split_k_kernel<T>>({blocks, T::THREADS, T::SHARED_BYTES}, product.ctx, plan);
  launch_split_k_sums(product, split_k);
}

}  // namespace fl
