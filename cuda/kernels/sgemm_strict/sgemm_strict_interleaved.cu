// Strict SGEMM of 10^4 to 10^6 outputs with k from 10 to 400: eight warps to a tile, in groups that share out the lines
// of every step along k (simt_sliced.cuh).
//
//   row         tile       groups   thread tile   registers   blocks on a multiprocessor
//   32x32i4     32 x 32      4         4 x 4          77              3
//   32x64i4     32 x 64      4         4 x 8          80              3
//   64x64i2     64 x 64      2         8 x 4          80              3
//   64x128i2    64 x 128     2         8 x 8         124              2
#include "cuda/kernels/sgemm_strict/simt_sliced.cuh"

namespace fl {
namespace {

struct Sizes32x32i4 {
  static constexpr int BM = 32, BN = 32, TM = 4, TN = 4, G = 4, SLOTS = 3, BLOCKS = 3;
};
struct Sizes32x64i4 {
  static constexpr int BM = 32, BN = 64, TM = 4, TN = 8, G = 4, SLOTS = 3, BLOCKS = 3;
};
struct Sizes64x64i2 {
  static constexpr int BM = 64, BN = 64, TM = 8, TN = 4, G = 2, SLOTS = 3, BLOCKS = 3;
};
struct Sizes64x128i2 {
  static constexpr int BM = 64, BN = 128, TM = 8, TN = 8, G = 2, SLOTS = 3, BLOCKS = 2;
};

}  // namespace

void sgemm_strict_32x32i4(const SgemmArgs& p, const Context& ctx) { simt_sliced<Sizes32x32i4>(p, ctx); }
void sgemm_strict_32x64i4(const SgemmArgs& p, const Context& ctx) { simt_sliced<Sizes32x64i4>(p, ctx); }
void sgemm_strict_64x64i2(const SgemmArgs& p, const Context& ctx) { simt_sliced<Sizes64x64i2>(p, ctx); }
void sgemm_strict_64x128i2(const SgemmArgs& p, const Context& ctx) { simt_sliced<Sizes64x128i2>(p, ctx); }

}  // namespace fl
