// precision="reproducible" on Hopper from some 1000 rows and columns up: tiles of sgemm_strict_large.cu and of
// sgemm_strict_medium.cu, block by block of k (block_sums.cuh).
#include "cuda/kernels/sgemm_reproducible/block_sums.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { reproducible_pipelined<tile>(p, ctx); }
FL_REPRODUCIBLE_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
