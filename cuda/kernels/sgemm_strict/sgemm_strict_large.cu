// Strict SGEMM from 1500 rows and columns up: tiles as large as the registers of a multiprocessor, one block on each,
// which goes from tile to tile (simt_ring.cuh). Every output is one chain of FMAs in ascending k, bit for bit the
// ladder's.
//
//   row        thread tile   flop per byte copied   issue bound   weak where
//   128x256      8 x 16             42.7               84.2 %     the last wave is short: 1536^2 has 72 tiles
//   192x192     12 x 12             48                 85.7 %     sizes are powers of two: edge tiles go to waste
//
// Lost: 192x256 with 12 x 16 per thread, whose bound is 87.3 %, spills and ran at 0.93 of 128x256.
#include "cuda/kernels/sgemm_strict/simt_ring.cuh"

namespace fl {
namespace {

struct Sizes128x256 {
  static constexpr int BM = 128, BN = 256, BK = 32, TM = 8, TN = 16, WM = 2, WN = 4, KG = 1, SLOTS = 4, SPLIT = 1;
  static constexpr int TEAMS = 1, WIDE_SLOTS = 0;
  static constexpr bool CUT = false, SQUARES = true, SHARES = true;
};
struct Sizes192x192 {
  static constexpr int BM = 192, BN = 192, BK = 32, TM = 12, TN = 12, WM = 2, WN = 4, KG = 1, SLOTS = 4, SPLIT = 1;
  static constexpr int TEAMS = 1, WIDE_SLOTS = 0;
  static constexpr bool CUT = false, SQUARES = false, SHARES = false;
};
struct Sizes128x128 {
  static constexpr int BM = 128, BN = 128, BK = 32, TM = 8, TN = 8, WM = 2, WN = 4, KG = 1, SLOTS = 6, SPLIT = 1;
  static constexpr int TEAMS = 1, WIDE_SLOTS = 0;
  static constexpr bool CUT = true, SQUARES = false, SHARES = true;
};

}  // namespace

void sgemm_strict_128x128(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes128x128>(p, ctx); }
void sgemm_strict_128x256(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes128x256>(p, ctx); }
void sgemm_strict_192x192(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes192x192>(p, ctx); }

}  // namespace fl
