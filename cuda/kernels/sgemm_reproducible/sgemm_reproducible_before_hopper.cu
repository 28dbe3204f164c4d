// The same before Hopper: the tiles of sgemm_strict_before_hopper.cu.
#include "cuda/kernels/sgemm_reproducible/block_sums.cuh"
#include "cuda/kernels/sgemm_strict/pipelined_by_registers.cuh"

namespace fl {

void sgemm_reproducible_128x192p(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_128x192p>(p, ctx);
}
void sgemm_reproducible_128x128p(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_128x128p>(p, ctx);
}
void sgemm_reproducible_128x192r(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_128x192r>(p, ctx);
}
void sgemm_reproducible_128x128r(const SgemmArgs& p, const Context& ctx) {
  reproducible_pipelined<reproducible_128x128r>(p, ctx);
}

}  // namespace fl
