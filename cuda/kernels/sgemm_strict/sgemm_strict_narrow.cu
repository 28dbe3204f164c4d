// Strict SGEMM with 17 to 100 rows or columns, or few tiles of any other size: narrow tiles, k split over groups of
// warps and cut over the grid (simt_ring.cuh).
//
//   row        tile      groups   thread tile   copied for an FMA   issue bound
//   64x32k8    64 x 32     8         8 x 8         0.047 floats       80.0 %
//   64x48k8    64 x 48     8         8 x 12        0.036              82.8 %
//   32x96k8    32 x 96     8         4 x 24        0.042              77.4 %      few rows: fragments of A are fours
//   64x64k4    64 x 64     4         8 x 8         0.031              80.0 %
//
// Eight groups are one warp each: a warp computes the whole tile over its share of k.
//
// What bounds them is how fast slots are filled: 0.031 to 0.047 floats for an FMA, and 4-byte copies where an operand
// is turned or not aligned. With all four copying warps on each slot, 64 x 64 tiles took 57 to 63 cycles for a k, 78
// where nothing is aligned; with a slot to each warp 46 to 52, and 53 to 56. Of 32 that FMAs take at least.
#include "cuda/kernels/sgemm_strict/simt_ring.cuh"

namespace fl {
namespace {

struct Sizes64x32k8 {
  static constexpr int BM = 64, BN = 32, BK = 16, TM = 8, TN = 8, WM = 1, WN = 1, KG = 8, SLOTS = 32, SPLIT = 1;
  static constexpr int TEAMS = 4, WIDE_SLOTS = 0;
  static constexpr bool CUT = true, SQUARES = false, SHARES = false;
};
struct Sizes64x48k8 {
  static constexpr int BM = 64, BN = 48, BK = 32, TM = 8, TN = 12, WM = 1, WN = 1, KG = 8, SLOTS = 12, SPLIT = 1;
  static constexpr int TEAMS = 4, WIDE_SLOTS = 0;
  static constexpr bool CUT = true, SQUARES = false, SHARES = false;
};
struct Sizes32x96k8 {
  static constexpr int BM = 32, BN = 96, BK = 32, TM = 4, TN = 24, WM = 1, WN = 1, KG = 8, SLOTS = 12, SPLIT = 1;
  static constexpr int TEAMS = 4, WIDE_SLOTS = 0;
  static constexpr bool CUT = true, SQUARES = false, SHARES = false;
};
struct Sizes64x64k4 {
  static constexpr int BM = 64, BN = 64, BK = 32, TM = 8, TN = 8, WM = 1, WN = 2, KG = 4, SLOTS = 12, SPLIT = 1;
  static constexpr int TEAMS = 4, WIDE_SLOTS = 0;
  static constexpr bool CUT = true, SQUARES = false, SHARES = false;
};

}  // namespace

void sgemm_strict_64x32k8(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes64x32k8>(p, ctx); }
void sgemm_strict_64x48k8(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes64x48k8>(p, ctx); }
void sgemm_strict_32x96k8(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes32x96k8>(p, ctx); }
void sgemm_strict_64x64k4(const SgemmArgs& p, const Context& ctx) { simt_ring<Sizes64x64k4>(p, ctx); }

}  // namespace fl
