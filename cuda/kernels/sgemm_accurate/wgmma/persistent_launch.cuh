// The launch of a product by persistent blocks.
#pragma once

#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/persistent_product.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/staged_epilogue.cuh"
#include "plan/accurate/wgmma_plan.h"

namespace fl {

// Boxes of 16 x 32 floats, or of 32 x 16 where columns follow one another in C of the product; false if the driver
// cannot be asked or they do not fit C.
inline bool c_tensor_map(CUtensorMap& map, const SgemmArgs& product) {
  const SgemmArgs p = rows_first(product);
  const bool columns = product.c.cs != 1;
  return allows_tma_store(p) &&
         tensor_map(map, p.c.data, p.m, p.n, p.c.rs, columns ? 32 : 16, columns ? 16 : 32,
                    columns ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE);
}

// How many clusters run at a time. The answer of the last device is kept: it takes longer to ask than to launch.
template <class T>
int resident_clusters(const LaunchedKernel& kernel, int sm_count) {
  if (T::CLUSTER_N == 1) return sm_count;
  static uint64_t known = 0;  // multiprocessors, clusters
  const uint64_t last = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (last >> 32 == uint64_t(sm_count)) return int(last);
  const int most = sm_count / T::CLUSTER_N;
  const int clusters =
      active_clusters(kernel, {unsigned(most * T::CLUSTER_N), T::THREADS, T::SHARED_BYTES, T::CLUSTER_N});
  if (clusters < 1) return most;  // whether clusters fit is for the launch to say
  __atomic_store_n(&known, uint64_t(sm_count) << 32 | uint64_t(clusters), __ATOMIC_RELAXED);
  return clusters;
}

template <class T, class Epilogue>
void launch_tiles(PersistentPlan plan, const CUtensorMap& map, const AccurateProduct& product) {
  constexpr auto kernel = persistent_product_kernel<T, Epilogue>;
  bool for_sm90 = false;  // before it is asked how many clusters run at a time
  if (prepare_kernel(launched<kernel>(), for_sm90, T::SHARED_BYTES) != cudaSuccess) return;
  const int64_t rows = plan.product.tile_rows,
                tiles = T::TRIANGLE ? rows * (rows + 1) / 2 : rows * plan.product.tile_cols;
  const int64_t clusters = resident_clusters<T>(launched<kernel>(), product.ctx.sm_count);
  const auto blocks = static_cast<unsigned>((tiles < clusters ? tiles : clusters) * T::CLUSTER_N);
  const auto three = three_terms_behind<T>(product);
  plan.goes_on = plan.fallback.wanted || three.wanted;
  launch_kernel<kernel>({blocks, T::THREADS, T::SHARED_BYTES, T::CLUSTER_N}, product.ctx, plan, map, three);
}

template <class T>
PersistentPlan persistent_plan(const AccurateProduct& product) {
  const SgemmArgs& p = product.p;
  return {ProductPlan(product, ceil_div(p.m, T::BM), ceil_div(p.n, T::BN * T::CLUSTER_N),
                      p.n >= 8192 && product.at.k_blocks <= 32 ? 11 : 8),
          false, Fallback(rows_first(p), product.last && T::FALLS_BACK)};
}

// Returns whether the float32 fallback is in the same kernel. Where products are left out there are fewer kinds of
// stores: the others are worth less than their code.
template <WgmmaTile TILE>
bool launch_persistent(const AccurateProduct& product) {
  using T = Wgmma<TILE>;
  constexpr bool ALL_STORES = TILE.left_out == 0;
  constexpr Store ORDINARY = TILE.left_out == 1 ? Store::direct_any : Store::direct;
  const SgemmArgs& p = product.p;
  const PersistentPlan plan = persistent_plan<T>(product);
  const bool adds = p.beta != 0.0f;
  CUtensorMap map{};
  if (!c_tensor_map(map, p) || (adds && (!ALL_STORES || !plan.product.out.addend.by16)))
    launch_tiles<T, StagedEpilogue<ORDINARY>>(plan, map, product);
  else if constexpr (TILE.left_out == 1) {
    if (plan.product.out.by_columns) launch_tiles<T, StagedEpilogue<Store::tma_columns>>(plan, map, product);
    else launch_tiles<T, StagedEpilogue<Store::tma>>(plan, map, product);
  } else if (!adds) launch_tiles<T, StagedEpilogue<Store::tma>>(plan, map, product);
  else if constexpr (ALL_STORES) {
    if (p.addend.data && p.addend.rs == 0) launch_tiles<T, StagedEpilogue<Store::tma_row>>(plan, map, product);
    else launch_tiles<T, StagedEpilogue<Store::tma_blend>>(plan, map, product);
  }
  return plan.fallback.wanted;
}

}  // namespace fl
