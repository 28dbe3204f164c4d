// Step 12 of the ladder: B arrives in boxes that one thread asks for (boxes.cuh).
//
// The tile is that of step 11. Instead of four copies of 16 bytes by each of 256 threads, with an address each, a step
// of B is one instruction of one thread; and instead of counting groups of copies, threads wait at a barrier in shared
// memory, an mbarrier. That a stage has been read is still said by the barrier of the whole block.
#include "cuda/kernels/ladder/async/boxes.cuh"

namespace fl {
namespace {

using TmaStages = BoxStages<4>;

__global__ void __launch_bounds__(BoxTiles::THREADS, 1)
    sgemm_tma_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, Operand a_operand,
                     const __grid_constant__ CUtensorMap b_map) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  const BlockTile block = block_tile<BoxTiles::BM, BoxTiles::BN>(p, grid);
  const int col = static_cast<int>(grid.tile(blockIdx.x).col) * BoxTiles::BN;
  const auto steps = static_cast<int>(p.k / BoxTiles::BK);
  TmaStages filled(memory, BoxTiles::THREADS, 1), read = filled;
  CopyTransposedA<BoxTiles::THREADS> copy_a(a_operand, block.a, minus_zeros, threadIdx.x);
  auto fetch = [&](int step) {
    if (step < steps) filled.fill(copy_a, &b_map, col, step * BoxTiles::BK, threadIdx.x == 0);
    filled.next();
  };

  pdl_wait();
  for (int step = 0; step < TmaStages::STAGES - 1; ++step) fetch(step);
  BoxTiles math(threadIdx.x);
  math.zero();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    ptx::barrier_wait(read.full(), read.parity);
    __syncthreads();
    fetch(step + TmaStages::STAGES - 1);
    math.multiply<TmaStages::A_ROW, BoxTiles::BN>(read.a(), read.b());
    read.next();
  }
  math.store(p, block);
#else
  not_for_this_target();
#endif
}

}  // namespace

void sgemm_tma(const SgemmArgs& p, const Context& ctx) {
  CUtensorMap b_map;
  if (!comes_in_boxes(p, b_map)) return sgemm_warp_tiles(p, ctx);
  const TileGrid grid(p.m, p.n, p.batch, BoxTiles::BM, BoxTiles::BN);
  launch_kernel<sgemm_tma_kernel>({grid.blocks(), BoxTiles::THREADS, TmaStages::SHARED_BYTES}, ctx, p, grid,
                                  operand(p.a, p.a.cs, p.a.rs), b_map);
}

}  // namespace fl
