// Split-K, for products of few tiles and a long k: each block takes a part of the k of a tile and stores its sums in
// the workspace, and a second kernel adds those up (split_k_reduction.cu). At 256 rows and columns there are but four
// tiles of 128x128 for all multiprocessors.
//
// A kernel behind that of two terms has the fallbacks: three terms, their split pass in segments, too, and float32.
#pragma once

#include "cuda/kernels/sgemm_accurate/fallback/fallback_tile.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/three_terms.cuh"
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
  __shared__ BlockRange range;
  const Stages stages = begin_stages<T>(memory, range, 4 * T::M_GROUPS);
  ptx::touch(plan);
  __syncthreads();
  // Blocks that run at a time read the same part of k of many tiles.
  const int tiles = plan.product.tile_rows * plan.product.tile_cols, part = int(blockIdx.x) / tiles;
  const TileCorner<int> corner = rasterize<T>(plan.product, int(blockIdx.x) % tiles, 0);
  pdl_wait();
  if (!terms_wanted(plan.product.check)) return;
  const WarpgroupWork<T> work(plan.product.k_blocks, part, plan.to.parts);
  if (threadIdx.x < 128) {
    if (threadIdx.x == 0) produce_part<T>(plan.product, corner, stages, work, range);
    return;
  }
  const unsigned status = check_range<T>(plan.product, stages, range, min(work.count, T::STAGES));
  if (status & STATUS_ELSEWHERE) return;
  float acc[T::BN / 2] = {};
  multiply_part<T>(acc, stages, work, typename T::Compensation(status));
  store_sums<T>(plan.to, corner, work, acc);
#else
  not_for_this_target();
#endif
}

struct SplitKFallbackPlan {
  ThreeTermsPlan three;
  SplitSegments cut;
  Fallback float32;
  const unsigned* status;
};

template <class T>
__global__ void __launch_bounds__(FALLBACK_THREADS, 1)
    split_k_fallbacks_kernel(const __grid_constant__ SplitKFallbackPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ BlockRange range;
  pdl_wait();
  const unsigned status = *plan.status;
  if (!(status & STATUS_REJECTED)) return;
  if (threadIdx.x == 0) range.status = status;
  __syncthreads();
  const SplitSegments& cut = plan.cut;
  const unsigned blocks = cut.split.groups * cut.segments;
  auto& tile = *reinterpret_cast<SplitTile<SPLIT_PIECE>*>(memory);
  const bool three = three_terms<T>(plan.three, memory, range, [&] {
    share_out(cut.split.taken, blocks, [&](unsigned block) {
      by_operand<Bf16Terms, LongSplit, false, 0>(
          cut.split, begin_segment(cut, block, tile.lines), [&](auto type, const SplitOperand& x, unsigned low) {
            split_segment<typename decltype(type)::type>(cut, x, low, tile.lines);
          });
    });
    share_out(cut.split.taken + 4, blocks, [&](unsigned block) { finish_segment<Bf16Terms>(cut, block, tile); });
  });
  if (three) return;
  const SplitKSums& to = plan.three.sums.from;
  const Fallback& own = plan.float32;
  share_out(cut.split.taken + 6, own.grid.total * to.parts,
            [&](unsigned unit) { fall_back_in_part(own.args, own.grid, to, unit, memory); });
  add_up_all_parts(plan.three.sums, status, memory);
#else
  not_for_this_target();
#endif
}

template <WgmmaTile TILE>
void launch_split_k(const AccurateProduct& product, const AccurateSplitK& split_k) {
  using T = Wgmma<TILE>;
  static_assert(T::BM == ACCURATE_SPLIT_K_TILE && T::BN == ACCURATE_SPLIT_K_TILE);
  const SplitKProductPlan plan{ProductPlan(product, split_k.rows / T::BM, split_k.ld / T::BN, 8),
                               split_k_sums(product, split_k)};
  const auto blocks = static_cast<unsigned>(plan.product.tile_rows * plan.product.tile_cols * split_k.count);
  launch_kernel<split_k_kernel<T>>({blocks, T::THREADS, T::SHARED_BYTES}, product.ctx, plan);
  if constexpr (TILE.terms == Terms::fp16x2) {
    using Behind = Wgmma<bf16x6_behind_64x128>;
    const ThreeTermsPlan three = three_terms_plan<Behind>(product);
    launch_split_k_sums(product, split_k, product.last && !three.wanted);
    if (!three.wanted) return;
    const SplitKFallbackPlan fallbacks{three, in_segments(three.split, product.at.records), Fallback(product.p, true),
                                       product.status};
    const LaunchShape shape{unsigned(product.ctx.sm_count), FALLBACK_THREADS, Behind::SHARED_BYTES};
    launch_kernel<split_k_fallbacks_kernel<Behind>>(shape, product.ctx, fallbacks);
  } else launch_split_k_sums(product, split_k, product.last);
}

}  // namespace fl
