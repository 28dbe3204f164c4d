// Strict SGEMM from about 700 rows and columns up, and for few rows, without Hopper's instructions: the kernels of
// pipelined.cuh for devices of compute capability 8.0 and up (p), and for any (r), whose operands travel by way of
// registers and whose warps meet at the barriers that hardware numbers. Where k is not split every output is one chain
// of FMAs in ascending k, bit for bit that of strict_128x256.
//
//   row         thread tile   groups   issue bound   shared memory   stages
//   128x192p      8 x 12         1       82.8 %         97 KiB       3 of 24 k
//   128x128p      8 x 8          1       80.0 %         71 KiB       2 of 32
//   64x128k2p     8 x 8          2       80.0 %         75 KiB       3 of 32
//   32x64k8p      4 x 16         8       76.2 %         78 KiB      12 of 16
//   128x192r      8 x 12         1       82.8 %         46 KiB       2 of 16
//   128x128r      8 x 8          1       80.0 %         55 KiB       3 of 16
//
// Without setmaxnreg all 384 threads have 168 registers: 8 x 16 sums and their fragments spill, 8 x 12 do not. In 99
// KiB the sums of sliced-K have room for two groups, or for eight of 32 x 64.
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

void sgemm_strict_128x192p(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_128x192p>(p, ctx); }
void sgemm_strict_128x128p(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_128x128p>(p, ctx); }
void sgemm_strict_64x128k2p(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_64x128k2p>(p, ctx); }
void sgemm_strict_32x64k8p(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_32x64k8p>(p, ctx); }
void sgemm_strict_128x192r(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_128x192r>(p, ctx); }
void sgemm_strict_128x128r(const SgemmArgs& p, const Context& ctx) { strict_pipelined<strict_128x128r>(p, ctx); }

}  // namespace fl
