// Strict SGEMM from 500 to 1500 rows and columns: tiles small enough to give every multiprocessor one, with k split
// over groups of warps, and over two blocks of a cluster, or over the grid, where that is still too few
// (pipelined.cuh).
//
//   row           tile      groups x blocks   thread tile   tiles on 132 multiprocessors
//   64x64k4c2     64 x 64        4 x 2           8 x 8       512^2: 64, 128 blocks
//   96x96k4c2     96 x 96        4 x 2          12 x 12      768^2: 64, 128 blocks
//   64x128k4      64 x 128       4 x 1           8 x 16      1024^2: 128
//   96x192k2      96 x 192       2 x 1          12 x 12      1536^2: 128
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
