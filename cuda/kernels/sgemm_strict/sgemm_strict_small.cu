// Strict SGEMM below 500 rows and columns: every warp a slice of k, two or four blocks of a cluster to a tile
// (simt_warps.cuh, simt_boxes.cuh).
//
//   row        tile      slices of k   blocks at 128^2, 192^2, 256^2, 384^2
//   32x32k8c4    32 x 32    8 warps x 4     64  144  256  576
//   32x32k8c2    32 x 32    8 warps x 2     32   72  128  288
//   48x32k8c4    48 x 32    8 warps x 4     48   96  192  384
//   48x48k8c2    48 x 48    8 warps x 2     18   32   72  128
#include "cuda/kernels/sgemm_strict/simt_boxes.cuh"

namespace fl {
namespace {

struct Sizes32x32k8c4 {
  static constexpr int TM = 4, TN = 8, KS = 16, SLOTS = 3, BOXES = 4, KG = 8, SPLIT = 4;
};
struct Sizes32x32k8c2 {
  static constexpr int TM = 4, TN = 8, KS = 16, SLOTS = 3, BOXES = 4, KG = 8, SPLIT = 2;
};
struct Sizes48x32k8c4 {
  static constexpr int TM = 6, TN = 8, KS = 16, SLOTS = 3, BOXES = 4, KG = 8, SPLIT = 4;
};
struct Sizes48x48k8c2 {
  static constexpr int TM = 6, TN = 12, KS = 16, SLOTS = 3, BOXES = 4, KG = 8, SPLIT = 2;
};

}  // namespace

void sgemm_strict_32x32k8c4(const SgemmArgs& p, const Context& ctx) { simt_slices<Sizes32x32k8c4>(p, ctx); }
void sgemm_strict_32x32k8c2(const SgemmArgs& p, const Context& ctx) { simt_slices<Sizes32x32k8c2>(p, ctx); }
void sgemm_strict_48x32k8c4(const SgemmArgs& p, const Context& ctx) { simt_slices<Sizes48x32k8c4>(p, ctx); }
void sgemm_strict_48x48k8c2(const SgemmArgs& p, const Context& ctx) { simt_slices<Sizes48x48k8c2>(p, ctx); }

}  // namespace fl
