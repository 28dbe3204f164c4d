// fp16x2 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the same
// split pass and range check (sgemm_fp16x2.cu), and a product of mma.sync instructions. What two terms cannot hold goes
// to bf16x6_mma in large products, and to plain float32.
#include "cuda/kernels/sgemm_accurate/mma/mma_launch.cuh"

namespace fl {
namespace {

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const AccurateSplitK split_k = mma_split_k(MmaProduct::fp16x2, p.m, p.n, p.k);
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2, TERM_BLOCK, split_k), Terms::fp16x2, ctx);
  constexpr int SHORTEST_BK = 32;  // of all tiles, as operands may be prepacked
  const RangeBound bound(Terms::fp16x2, p.k, MMA_ERROR, SHORTEST_BK);
  const bool bf16x6 = has_bf16x6_fallback(p);
  const AccurateProduct product{p, at, bound, nullptr, at.statuses, !bf16x6, ctx};
  bool falls_back = true;
  launch_split<Fp16Terms>(product);
  if (split_k.count == 1)
    falls_back =
        launch_mma<fp16x2_mma_tiles>(choose_mma_tile(MmaProduct::fp16x2, p.m, p.n, p.k, *ctx.device).index, product);
  else if (ctx.device->shared_per_block >= fp16x2_mma_128x128.shared_bytes())
    launch_mma_split_k<fp16x2_mma_128x128>(product, split_k);
  else launch_mma_split_k<fp16x2_mma_128x64>(product, split_k);
  if (bf16x6) launch_bf16x6_mma(p, at.statuses, at.statuses + 1, ctx);  // in the workspace
  else if (!falls_back) launch_float32_fallback(p, at.statuses, ctx);
}

}  // namespace

void sgemm_fp16x2_mma(const SgemmArgs& p, const Context& ctx) { multiply_by_terms(p, ctx, multiply_one); }

}  // namespace fl
