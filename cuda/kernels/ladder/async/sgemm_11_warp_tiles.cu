// Step 11 of the ladder: 8 x 16 outputs a thread, 64 x 64 a warp, 128 x 256 a block; all else is step 10.
//
// Of what a scheduler can issue, 84.2 % are left for FMAs instead of 80.0 % (warp_tiles.cuh), and a step of k brings
// 42.7 flop for each byte copied instead of 32. The price: 128 sums and two sets of 24 fragments are most of the 255
// registers that a thread can have, so one block of eight warps is all that a multiprocessor holds.
#include "cuda/kernels/ladder/async/async_copies.cuh"

namespace fl {

void sgemm_warp_tiles(const SgemmArgs& p, const Context& ctx) { launch_async_copies<WarpTiles<8, 16>, 3, 1>(p, ctx); }

}  // namespace fl
