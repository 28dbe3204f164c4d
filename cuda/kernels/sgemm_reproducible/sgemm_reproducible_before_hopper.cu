// The same before Hopper: the tiles of sgemm_strict_before_hopper.cu.
#include "cuda/kernels/sgemm_reproducible/block_sums.cuh"
#include "cuda/kernels/sgemm_strict/pipelined_by_registers.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { reproducible_pipelined<tile>(p, ctx); }
FL_REPRODUCIBLE_BEFORE_HOPPER_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
