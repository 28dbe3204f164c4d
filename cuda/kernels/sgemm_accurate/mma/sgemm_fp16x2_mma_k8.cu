// fp16x2 for GPUs whose tensor cores take 8 k at a time and which copy nothing asynchronously, from compute capability
// 7.5 on: the product of sgemm_fp16x2_mma.cu by instructions half as long, with operands through registers, in 64 KiB
// of shared memory. What two terms cannot hold goes to plain float32 at once: there is no bf16 before 8.0.
#include "cuda/kernels/sgemm_accurate/mma/mma_launch.cuh"

namespace fl {
namespace {

void multiply_k8(const SgemmArgs& p, const Context& ctx) {
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2), Terms::fp16x2, ctx);
  const RangeBound bound(Terms::fp16x2, p.k, MMA_K8_ERROR, fp16x2_mma_k8_tiles[0].BK);
  const AccurateProduct product{p, at, bound, nullptr, at.statuses, true, ctx};
  launch_split<Fp16Terms>(product);
  const int index = choose_mma_tile(MmaProduct::fp16x2_k8, p.m, p.n, p.k, *ctx.device).index;
  if (!launch_mma<fp16x2_mma_k8_tiles>(index, product)) launch_float32_fallback(p, at.statuses, ctx);
}

}  // namespace

void sgemm_fp16x2_mma_k8(const SgemmArgs& p, const Context& ctx) { multiply_by_terms(p, ctx, multiply_k8); }

}  // namespace fl
