// Strict SGEMM below 500 rows and columns: every warp a range of k, two or four blocks of a cluster to a tile
// (cluster_split_k.cuh, cluster_split_k_tma.cuh).
#include "cuda/kernels/sgemm_strict/cluster_split_k_tma.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { strict_cluster_split_k<tile>(p, ctx); }
FL_CLUSTER_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
