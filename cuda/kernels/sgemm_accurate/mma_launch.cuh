// The launch of a product by mma.sync, with the tile that the plan says.
#pragma once

#include "cuda/kernels/sgemm_accurate/mma_sync.cuh"
#include "cuda/kernels/sgemm_accurate/split_k.cuh"

namespace fl {

template <class T>
constexpr bool is_planned_as(const MmaTileShape& shape) {
  return T::BM == shape.rows && T::BN == shape.cols && T::K_GROUPS == shape.k_parts && T::BK == shape.promoted_k &&
         (T::K_GROUPS > 1 || T::PERSISTENT != shape.single) && ceil_div(T::SHARED_BYTES, 1024) == shape.shared_kib;
}

// What all tiles of a product have in common. `last`: these terms have no other fallback than float32.
struct MmaLaunch {
  const SgemmArgs& p;
  const ProductOperands& at;
  const RangeBound& bound;
  const unsigned* previous;
  unsigned* status;
  bool last;
  const Context& ctx;
};

// Returns whether the float32 fallback is in the same kernel.
template <class T, bool SPLIT_K = false>
bool launch_mma_tile(const MmaLaunch& launch, const AccurateSplitK& split_k = {}) {
  const SgemmArgs& p = launch.p;
  const bool falls_back = launch.last && T::FALLS_BACK && !SPLIT_K;
  const MmaPlan product{launch.at.a.terms,
                        launch.at.b.terms,
                        int(launch.at.k_blocks),
                        int(ceil_div(p.m, T::BM)),
                        int(ceil_div(p.n, T::BN)),
                        aligned<4>(p.c.data, p.c.rs),
                        range_check_of(p, launch.at, launch.bound, launch.previous, launch.status),
                        epilogue_of(p, launch.at),
                        Fallback(p, falls_back),
                        {launch.at.sums, split_k.count, split_k.ld, split_k.rows * split_k.ld}};
  const int64_t units = int64_t{product.tile_rows} * product.tile_cols * split_k.count,
                most = T::PERSISTENT ? int64_t{T::RESIDENT} * launch.ctx.sm_count : units;
  const LaunchShape shape{static_cast<unsigned>(units < most ? units : most), T::THREADS, T::SHARED_BYTES};
  launch_kernel<mma_sync_kernel<T, SPLIT_K>>(shape, launch.ctx, product);
  return falls_back;
}

// Tiles are those of the plan's list, in its order.
template <class... Tiles>
bool launch_mma(int tile, const MmaLaunch& launch) {
  int i = 0;
  bool falls_back = false;
  ((i++ == tile ? void(falls_back = launch_mma_tile<Tiles>(launch)) : void()), ...);
  return falls_back;
}

// The parts of k of tiles T, what they sum up to, and the fallback over the same parts (split_k.cuh).
template <class T>
void launch_mma_split_k(const MmaLaunch& launch, const AccurateSplitK& split_k) {
  launch_mma_tile<T, true>(launch, split_k);
  launch_split_k_sums(launch.p, launch.at, split_k, launch.status, launch.last, launch.ctx);
}

}  // namespace fl
