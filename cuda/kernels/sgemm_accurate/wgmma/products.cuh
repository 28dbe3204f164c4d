// The launches that fp16x2 and bf16x6 have in common; those of persistent blocks are in persistent_launch.cuh.
#pragma once

#include "cuda/kernels/sgemm_accurate/product.cuh"
#include "plan/accurate/wgmma_plan.h"

namespace fl {

// A product of three bf16 terms, and its fallback. With `previous`, the status of two fp16 terms, only if those are
// rejected. Returns whether each block has one tile: then the next launch may work beside this one.
bool launch_bf16x6(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx,
                   const Expectation& expectation = {});

// One tile for each block or cluster (single_tile_product.cuh). Returns whether the float32 fallback is in the same
// kernel.
template <WgmmaTile TILE>
bool launch_single(const AccurateProduct& product);
// Parts of k, what they sum up to, and the fallback over the same parts (split_k_product.cuh).
template <WgmmaTile TILE>
void launch_split_k(const AccurateProduct& product, const AccurateSplitK& split_k);

// Whether one triangle of C is computed, B being A transposed. Prepacked operands are those of whole products.
inline bool launches_triangle(const SgemmArgs& p, const Context& ctx) {
  return computes_triangle(p) && !(ctx.prepacked && (ctx.prepacked->a.memory || ctx.prepacked->b.memory));
}
// That, with one split pass, whose terms serve as both. Returns whether the float32 fallback is in the same kernel.
template <WgmmaTile TILE>
bool launch_triangle(const SgemmArgs& p, const RangeBound& bound, const unsigned* previous, unsigned* status, bool last,
                     const Context& ctx, const Expectation& expectation);

}  // namespace fl
