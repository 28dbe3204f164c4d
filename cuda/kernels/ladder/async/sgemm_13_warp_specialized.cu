// Step 13 of the ladder: four warps copy, eight multiply (specialized.cuh). Tile and boxes are those of step 12.
#include "cuda/kernels/ladder/async/specialized.cuh"

namespace fl {
namespace {

__global__ void __launch_bounds__(SPECIALIZED, 1)
    sgemm_warp_specialized_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, Operand a_operand,
                                  const __grid_constant__ CUtensorMap b_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  SpecializedStages stages(memory, COPYING, MULTIPLYING);
  const auto steps = static_cast<int>(p.k / BoxTiles::BK);
  auto row = [&] { return grid.tile(blockIdx.x).row * BoxTiles::BM; };
  auto col = [&] { return grid.tile(blockIdx.x).col * BoxTiles::BN; };
  pdl_wait();
  if (threadIdx.x >= MULTIPLYING) {
    ptx::registers_down<COPYING_REGISTERS>();
    copy_steps(p, stages, a_operand, &b_map, row(), col(), 0, steps);
    ptx::wait_copies<0>();
  } else {
    ptx::registers_up<MULTIPLYING_REGISTERS>();
    BoxTiles math(threadIdx.x);
    math.zero();
    multiply_steps(stages, math, steps);
    math.store(p, tile_of_c(p, row(), col()));
  }
#else
  not_for_this_target();
#endif
}

}  // namespace

void sgemm_warp_specialized(const SgemmArgs& p, const Context& ctx) {
  CUtensorMap b_map;
  if (!comes_in_boxes(p, b_map)) return sgemm_warp_tiles(p, ctx);
  const TileGrid grid(p.m, p.n, p.batch, BoxTiles::BM, BoxTiles::BN);
  launch_kernel<sgemm_warp_specialized_kernel>({grid.blocks(), SPECIALIZED, SpecializedStages::SHARED_BYTES}, ctx, p,
                                               grid, operand(p.a, p.a.cs, p.a.rs), b_map);
}

}  // namespace fl
