// Strict SGEMM with 17 to 100 rows or columns, or few tiles of any other size: narrow tiles, sliced-K over groups of
// warps and split-K over the grid (pipelined.cuh).
//
//   row        tile      groups   thread tile   copied for an FMA   issue bound
//   64x32k8    64 x 32     8         8 x 8         0.047 floats       80.0 %
//   64x48k8    64 x 48     8         8 x 12        0.036              82.8 %
//   32x96k8    32 x 96     8         4 x 24        0.042              77.4 %      few rows: fragments of A are fours
//   64x64k4    64 x 64     4         8 x 8         0.031              80.0 %
//
// Eight groups are one warp each: a warp computes the whole tile over its share of k.
//
// What bounds them is how fast stages are filled: 0.031 to 0.047 floats for an FMA, and 4-byte copies where an operand
// is transposed or not aligned. With all four copying warps on each stage, 64 x 64 tiles took 57 to 63 cycles for a k,
// 78 where nothing is aligned; with a stage to each warp 46 to 52, and 53 to 56. Of 32 that FMAs take at least.
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

void sgemm_strict_64x32k8(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_64x32k8>(p, ctx); }
void sgemm_strict_64x48k8(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_64x48k8>(p, ctx); }
void sgemm_strict_32x96k8(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_32x96k8>(p, ctx); }
void sgemm_strict_64x64k4(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_64x64k4>(p, ctx); }

}  // namespace fl
