// bf16x6 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the split
// pass and the range check of sgemm_bf16x6.cu, and a product of mma.sync instructions. Half as fast as fp16x2_mma, and
// its fallback.
#include "cuda/kernels/sgemm_accurate/mma/mma_launch.cuh"

namespace fl {

void launch_bf16x6_mma(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx) {
  Context own = ctx;
  if (previous) own.prepacked = nullptr;  // they are of two fp16 terms
  const ProductOperands at(p, AccuratePlan(p, Terms::bf16x6), Terms::bf16x6, own);
  const RangeBound bound(Terms::bf16x6, p.k);
  const AccurateProduct product{p, at, bound, previous, status, true, ctx};
  launch_split<Bf16Terms>(product);
  const int index = choose_mma_tile(MmaProduct::bf16x6, p.m, p.n, p.k, *ctx.device).index;
  if (!launch_mma<bf16x6_mma_tiles>(index, product)) launch_float32_fallback(p, status, ctx);
}

void sgemm_bf16x6_mma(const SgemmArgs& p, const Context& ctx) {
  auto* const status = static_cast<unsigned*>(ctx.workspace);
  multiply_by_terms(
      p, ctx, [&](const SgemmArgs& one, const Context& context) { launch_bf16x6_mma(one, nullptr, status, context); });
}

}  // namespace fl
