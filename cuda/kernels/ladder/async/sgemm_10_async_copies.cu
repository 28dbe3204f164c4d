// Step 10 of the ladder: tiles arrive by asynchronous copies, three steps of k ahead (async_copies.cuh).
//
// 256 threads, 128 x 128 outputs, 8 x 8 a thread, 16 steps of k at a time; four stages of 16.5 KiB, two blocks on a
// multiprocessor. Against step 9 the eight floats that waited in registers are gone, and with them the place in the
// code where they were waited for; steps of k are twice as long, since a stage costs no registers.
#include "cuda/kernels/ladder/async/async_copies.cuh"

namespace fl {
namespace {

using Tiles8x8 = WarpTiles<8, 8>;
using Copies8x8 = AsyncCopies<Tiles8x8, 4>;

__global__ void __launch_bounds__(Tiles8x8::THREADS, 2)
    sgemm_async_copies_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, Operand a, Operand b, bool c_by16) {
#if __CUDA_ARCH__ >= 800
  Copies8x8::block(p, grid, a, b, c_by16);
#else
  not_for_this_target();
#endif
}

}  // namespace

void sgemm_async_copies(const SgemmArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, Tiles8x8::BM, Tiles8x8::BN);
  launch_kernel<sgemm_async_copies_kernel>({grid.blocks(), Tiles8x8::THREADS, Copies8x8::SHARED_BYTES}, ctx, p, grid,
                                           operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs), aligned16(p.c));
}

}  // namespace fl
