// Strict SGEMM from 500 to 1500 rows and columns: tiles small enough to give every multiprocessor one, with k split
// over groups of warps, and over two blocks of a cluster, or over the grid, where that is still too few
// (pipelined.cuh).
//
// Groups, because a block has eight multiplying warps whatever its tile is, and a thread tile has to stay large: eight
// warps beside each other on 64 x 64 would leave each thread 4 x 4 outputs and half its issue slots to fragment loads.
//
// Full tiles of the first three are half as high and twice as wide (wide_tma_tile) where n allows it.
#include "cuda/kernels/sgemm_strict/group_sums.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { strict_pipelined<tile>(p, ctx); }
FL_MEDIUM_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
