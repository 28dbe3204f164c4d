// The launch of a product by mma.sync, with the tile that the plan says.
#pragma once

#include "cuda/kernels/sgemm_accurate/launch.cuh"
#include "cuda/kernels/sgemm_accurate/mma_sync.cuh"

namespace fl {

template <class T>
constexpr bool is_planned_as(const MmaTileShape& shape) {
  return T::BM == shape.rows && T::BN == shape.cols && T::K_GROUPS == shape.k_parts && T::BK == shape.promoted_k &&
         ceil_div(T::SHARED_BYTES, 1024) == shape.shared_kib;
}

template <class T>
void launch_mma_tile(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound, const unsigned* previous,
                     unsigned* status, const Context& ctx) {
  const MmaPlan product{at.a.terms,
                        at.b.terms,
                        int(at.k_blocks),
                        int(ceil_div(p.m, T::BM)),
                        int(ceil_div(p.n, T::BN)),
                        aligned<4>(p.c.data, p.c.rs),
                        range_check_of(p, at, bound, previous, status),
                        epilogue_of(p, at)};
  const int64_t tiles = int64_t{product.tile_rows} * product.tile_cols,
                most = T::PERSISTENT ? int64_t{T::RESIDENT} * ctx.sm_count : tiles;
  launch_kernel<mma_sync_kernel<T>>({static_cast<unsigned>(tiles < most ? tiles : most), T::THREADS, T::SHARED_BYTES},
                                    ctx, product);
}

// Tiles are those of the plan's list, in its order.
template <class... Tiles>
void launch_mma(int tile, const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound,
                const unsigned* previous, unsigned* status, const Context& ctx) {
  int i = 0;
  ((i++ == tile ? launch_mma_tile<Tiles>(p, at, bound, previous, status, ctx) : void()), ...);
}

}  // namespace fl
