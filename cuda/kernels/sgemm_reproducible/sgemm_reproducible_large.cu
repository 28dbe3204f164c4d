// precision="reproducible" on Hopper from some 1000 rows and columns up: tiles of sgemm_strict_large.cu and of
// sgemm_strict_medium.cu, block by block of k (block_sums.cuh).
#include "cuda/kernels/sgemm_reproducible/block_sums.cuh"

namespace fl {

void sgemm_reproducible_128x256(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_128x256>(p, ctx);
}
void sgemm_reproducible_192x192(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_192x192>(p, ctx);
}
void sgemm_reproducible_128x128(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_128x128>(p, ctx);
}
void sgemm_reproducible_96x192k2(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_96x192k2>(p, ctx);
}
void sgemm_reproducible_64x128k4(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_64x128k4>(p, ctx);
}

}  // namespace fl
