// The fallback of fp16x2 as a kernel of its own, behind products whose kernels have no room for it.
#include "cuda/kernels/sgemm_accurate/wgmma/three_terms.cuh"

#include "cuda/kernels/sgemm_accurate/wgmma/products.cuh"

namespace fl {
namespace {

__global__ void __launch_bounds__(ThreeTerms::THREADS, 1)
    three_terms_kernel(const __grid_constant__ Fallback plan, const __grid_constant__ AccurateEpilogue out,
                       const unsigned* status) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  pdl_wait();
  const unsigned found = *status;
  if (!(found & STATUS_REJECTED)) return;
  if (found & STATUS_THREE_TERMS) fall_back_to_three_terms(plan, out, memory);
  else if (threadIdx.x < FALLBACK_THREADS) fall_back(plan, memory);
#else
  not_for_this_target();
#endif
}

}  // namespace

void launch_three_terms(const AccurateProduct& product) {
  const SgemmArgs& p = product.p;
  const int64_t tiles = ceil_div(p.m, ThreeTerms::BM) * ceil_div(p.n, ThreeTerms::BN), all = product.ctx.sm_count;
  launch_kernel<three_terms_kernel>({unsigned(tiles < all ? tiles : all), ThreeTerms::THREADS, THREE_TERMS_SHARED},
                                    product.ctx, Fallback(p, true), product.epilogue(), product.status);
}

}  // namespace fl
