// The launch that adds up the sums of split-K.
#include "cuda/kernels/sgemm_accurate/split_k_reduction.cuh"

#include "cuda/kernels/common/launch.cuh"

namespace fl {

namespace {

__global__ void __launch_bounds__(REDUCTION_THREADS)
    split_k_reduction_kernel(const __grid_constant__ SplitKReduction plan) {
  __shared__ ReductionShared partial;
  pdl_wait();
  const unsigned status = *plan.status;
  if (status & STATUS_DONE || (status & STATUS_REJECTED && !plan.of_fallback_too)) return;
  add_up_parts(plan, status, blockIdx.x, partial);
}

}  // namespace

void launch_split_k_sums(const AccurateProduct& product, const AccurateSplitK& split_k, bool falls_back) {
  const SgemmArgs& p = product.p;
  const SplitKSums from = split_k_sums(product, split_k);
  if (falls_back) launch_split_k_fallback(p, product.status, from, product.ctx);
  const LaunchShape shape{reduction_blocks(int(p.m), int(p.n)), REDUCTION_THREADS};
  launch_kernel<split_k_reduction_kernel>(shape, product.ctx, SplitKReduction(product, from, falls_back));
}

}  // namespace fl
