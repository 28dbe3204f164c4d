// Strict SGEMM below 500 rows and columns: every warp a range of k, two or four blocks of a cluster to a tile
// (cluster_split_k.cuh, cluster_split_k_tma.cuh).
//
//   row          tile       ranges of k   blocks at 128^2, 192^2, 256^2, 384^2
//   32x32k8c4    32 x 32    8 warps x 4     64  144  256  576
//   32x32k8c2    32 x 32    8 warps x 2     32   72  128  288
//   48x32k8c4    48 x 32    8 warps x 4     48   96  192  384
//   48x48k8c2    48 x 48    8 warps x 2     18   32   72  128
#include "cuda/kernels/sgemm_strict/cluster_split_k_tma.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { strict_cluster_split_k<tile>(p, ctx); }
FL_CLUSTER_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
