// Strict SGEMM from about 700 rows and columns up, and for few rows, without Hopper's instructions: the kernels of
// pipelined.cuh for devices of compute capability 8.0 and up (p), and for any (r), whose operands travel by way of
// registers and whose warps meet at the barriers that hardware numbers. Where k is not split every output is one chain
// of FMAs in ascending k, bit for bit that of strict_128x256.
//
// Without setmaxnreg all 384 threads have 168 registers: 8 x 16 sums and their fragments spill, 8 x 12 do not. In 99
// KiB the sums of sliced-K have room for two groups.
#include "cuda/kernels/sgemm_strict/group_sums.cuh"
#include "cuda/kernels/sgemm_strict/pipelined_by_registers.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { strict_pipelined<tile>(p, ctx); }
FL_BEFORE_HOPPER_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
