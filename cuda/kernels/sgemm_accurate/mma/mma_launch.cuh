// The launch of a product by mma.sync, with the tile that the plan says.
#pragma once

#include "cuda/kernels/sgemm_accurate/mma/mma_product.cuh"
#include "cuda/kernels/sgemm_accurate/product.cuh"
#include "plan/accurate/mma_plan.h"

namespace fl {

// A product of three bf16 terms, and its fallback. With `previous`, the status of two fp16 terms, only if those are
// rejected.
void launch_bf16x6_mma(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx);

// Returns whether the float32 fallback is in the same kernel.
template <MmaTile TILE, bool SPLIT_K = false>
bool launch_mma_tile(const AccurateProduct& product, const AccurateSplitK& split_k = {}) {
  using T = Mma<TILE>;
  const SgemmArgs& p = product.p;
  const bool falls_back = product.last && T::FALLS_BACK && !SPLIT_K;
  const MmaPlan plan{
      product.at.a.terms,        product.at.b.terms,
      int(product.at.k_blocks),  int(ceil_div(p.m, T::BM)),
      int(ceil_div(p.n, T::BN)), aligned<4>(p.c.data, p.c.rs),
      product.range_check(),     product.epilogue(),
      Fallback(p, falls_back),   {product.at.sums, split_k.count, split_k.ld, split_k.rows * split_k.ld}};
  const int64_t units = int64_t{plan.tile_rows} * plan.tile_cols * split_k.count,
                most = T::PERSISTENT ? int64_t{T::BLOCKS} * product.ctx.sm_count : units;
  const LaunchShape shape{static_cast<unsigned>(units < most ? units : most), T::THREADS, T::SHARED_BYTES};
  launch_kernel<mma_sync_kernel<T, SPLIT_K>>(shape, product.ctx, plan);
  return falls_back;
}

// The tile at `index` of a list.
template <const auto& TILES>
bool launch_mma(int index, const AccurateProduct& product) {
  return launch_tile<TILES>(index, [&]<MmaTile TILE>() { return launch_mma_tile<TILE>(product); });
}

// The parts of k, what they sum up to, and the fallback over the same parts.
template <MmaTile TILE>
void launch_mma_split_k(const AccurateProduct& product, const AccurateSplitK& split_k) {
  launch_mma_tile<TILE, true>(product, split_k);
  launch_split_k_sums(product, split_k, product.last);
}

}  // namespace fl
