// Step 11 of the ladder: 8 x 16 outputs a thread, 64 x 64 a warp, 128 x 256 a block; all else is step 10.
//
// Of what a scheduler can issue, 84.2 % are left for FMAs instead of 80.0 % (warp_tiles.cuh), and a step of k brings
// 42.7 flop for each byte copied instead of 32. The price: 128 sums and two sets of 24 fragments are most of the 255
// registers that a thread can have, so one block of eight warps is all that a multiprocessor holds.
#include "cuda/kernels/ladder/async/async_copies.cuh"

namespace fl {
namespace {

using Tiles8x16 = WarpTiles<8, 16>;
using Copies8x16 = AsyncCopies<Tiles8x16, 3>;

__global__ void __launch_bounds__(Tiles8x16::THREADS, 1)
    sgemm_warp_tiles_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, Operand a, Operand b, bool c_by16) {
#if __CUDA_ARCH__ >= 800
  Copies8x16::block(p, grid, a, b, c_by16);
#else
  not_for_this_target();
#endif
}

}  // namespace

void sgemm_warp_tiles(const SgemmArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, Tiles8x16::BM, Tiles8x16::BN);
  launch_kernel<sgemm_warp_tiles_kernel>({grid.blocks(), Tiles8x16::THREADS, Copies8x16::SHARED_BYTES}, ctx, p, grid,
                                         operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs), aligned16(p.c));
}

}  // namespace fl
