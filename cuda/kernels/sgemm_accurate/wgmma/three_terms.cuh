// Three bf16 terms in the launch that has rejected two: FALLBACK_THREADS of each block share out the split pass, wait
// for one another, and multiply. Launches of their own would take 1 to 2 us of every call.
#pragma once

#include "cuda/kernels/sgemm_accurate/split/launch.cuh"
#include "cuda/kernels/sgemm_accurate/split/tile_splitter.cuh"
#include "cuda/kernels/sgemm_accurate/split_k_reduction.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/tile_part.cuh"
#include "plan/accurate/wgmma_plan.h"

namespace fl {

template <class T>
using TileBehind = Wgmma<T::BM == 64 && T::BN == 64 ? bf16x6_behind_64x64 : bf16x6_behind_64x128>;

struct ThreeTermsPlan {
  bool wanted;
  SingleProduct product;
  SplitPlan split;
  unsigned* rejected;
  SplitKReduction sums;  // of a long k
};
struct NothingBehind {
  static constexpr bool wanted = false;
};
using BehindTile = SplitTile<LONGEST_PART>;

// Calls work(unit) for units that no other block has taken, and waits for all of them. A block that takes one finishes
// it before it waits, so none waits for a block that has not begun. counts: units taken, finished.
template <class Work>
__device__ __forceinline__ void share_out(unsigned* counts, unsigned units, Work&& work) {
  __shared__ unsigned next;
  for (;;) {
    if (threadIdx.x == 0) next = atomicAdd(&counts[0], 1);
    __syncthreads();
    const unsigned unit = next;
    if (unit >= units) break;
    work(unit);
    ptx::bulk_copy_fence();
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&counts[1], 1);
  }
  if (threadIdx.x == 0)
    while (ptx::load_acquire(&counts[1]) < units) __nanosleep(100);
  __syncthreads();
  ptx::bulk_copy_fence();
}

// Returns whether three terms have computed the product: not where two had no NaN but three are out of range too.
template <class T, class Split>
__device__ __forceinline__ bool three_terms(const ThreeTermsPlan& plan, char* memory, BlockRange& range,
                                            Split&& split) {
  static_assert(T::THREADS == FALLBACK_THREADS && LongSplit::THREADS == FALLBACK_THREADS);
  if (!plan.wanted || !out_of_range(range.status)) return false;
  if (blockIdx.x == 0 && threadIdx.x == 0 && plan.rejected) *plan.rejected = 1;
  split();
  const ProductPlan& product = plan.product.product;
  const Stages stages = begin_stages<T>(memory, range, 4);
  __syncthreads();
  reduce_range_words<0, T::THREADS>(product.check, range);
  __syncthreads();
  const unsigned status = status_of(product.check, range);
  if (blockIdx.x == 0 && threadIdx.x == 0) *product.check.status = status;
  if (status & STATUS_REJECTED) return false;
  const SplitKSums& to = plan.sums.from;
  const int tiles = product.tile_rows * product.tile_cols;
  const auto multiply = [&](int unit) {
    const TileCorner<int> corner = rasterize<T>(product, unit % tiles, 0);
    if (plan.product.mirrored && corner.col * T::BN >= (corner.row + 1) * T::BM) return;
    const WarpgroupWork<T> work(product.k_blocks, unit / tiles, to.parts);
    if (threadIdx.x == 0) end_stages(stages);
    begin_stages<T>(memory, range, 4);
    __syncthreads();
    if (threadIdx.x == 0) produce_part<T>(product, corner, stages, work, range);
    if (threadIdx.x == 128) ptx::barrier_arrive(stages.checked);
    if (threadIdx.x >= 128) multiply_single<T>(plan.product, corner, stages, 0, work, status, to);
  };
  share_out(plan.split.taken + 2, tiles * to.parts, multiply);
  if (to.parts > 1) add_up_all_parts(plan.sums, status, memory);
  return true;
}

template <class T>
__device__ __forceinline__ bool three_terms(const ThreeTermsPlan& plan, char* memory, BlockRange& range) {
  static_assert(sizeof(BehindTile) <= T::SHARED_BYTES);
  return three_terms<T>(plan, memory, range, [&] {
    share_out(plan.split.taken, plan.split.groups, [&](unsigned group) {
      split_by_tile<Bf16Terms, LONGEST_PART, false>(plan.split, group, *reinterpret_cast<BehindTile*>(memory));
    });
  });
}

template <class T>
ThreeTermsPlan three_terms_plan(const AccurateProduct& two) {
  const SgemmArgs& p = two.p;
  Context own = two.ctx;
  own.prepacked = nullptr;  // they are of two terms
  const AccurateSplitK split_k = three_terms_split_k(p);
  const ProductOperands at(p, AccuratePlan(p, Terms::bf16x6, TERM_BLOCK, split_k), Terms::bf16x6, own);
  const RangeBound bound(Terms::bf16x6, p.k);
  const AccurateProduct three{p, at, bound, nullptr, two.status + 1, true, own};
  // The split pass of two terms, if there is one, sets the counts to zero.
  const bool wanted =
      two.last && falls_back_to_three_terms(p) && two.at.a.missing_groups() + two.at.b.missing_groups() > 0;
  return {wanted,
          {ProductPlan(three, ceil_div(p.m, T::BM), ceil_div(p.n, T::BN), 8), aligned<4>(p.c.data, p.c.rs),
           computes_triangle(p)},
          split_plan(three),
          two.expectation.rejected,
          SplitKReduction(three, split_k_sums(three, split_k))};
}

// In kernels of two terms, but those of operands of 16 bits: the code is large.
template <class T>
constexpr bool has_three_terms = T::S::KIND == Terms::fp16x2 && T::LEFT_OUT == 0;
template <class T>
using ThreeTermsBehind = std::conditional_t<has_three_terms<T>, ThreeTermsPlan, NothingBehind>;
template <class T>
ThreeTermsBehind<T> three_terms_behind(const AccurateProduct& product) {
  if constexpr (has_three_terms<T>) return three_terms_plan<TileBehind<T>>(product);
  else return {};
}

}  // namespace fl
