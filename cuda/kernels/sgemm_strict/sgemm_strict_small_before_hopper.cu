// Strict SGEMM with 17 to 100 rows or columns, or few tiles of any other size, without Hopper's instructions: narrow
// tiles, sliced-K over groups of warps and split-K over the grid (pipelined.cuh), within 99 KiB of shared memory.
//
//   row        tile      groups   thread tile   stages of 16 k   shared memory
//   64x64k4p   64 x 64     4         8 x 8           10              85 KiB
//   32x64k8p   32 x 64     8         4 x 16          12              78 KiB
//
// 64 x 48 and 32 x 96 in eight groups have no room: the groups' sums take 96 KiB, and staging for C as much again as is
// left.
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

void sgemm_strict_64x64k4p(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_64x64k4p>(p, ctx); }
void sgemm_strict_32x64k8p(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_32x64k8p>(p, ctx); }

}  // namespace fl
