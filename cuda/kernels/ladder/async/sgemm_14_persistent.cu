// Step 14 of the ladder: as many blocks as multiprocessors, each of which goes from tile to tile, so that the copies
// for the next tile are under way while this one is stored. Two kernels, which differ in the order of the tiles:
//
//   persistent   row by row of tiles, as in all steps before: 132 tiles that are computed at a time are a strip of C
//                that needs a few rows of A and, from 132 tiles a row on, all columns of B that there are
//   tile_order   in bands of eight rows of tiles, down and then across: a rectangle, which needs few of both, and finds
//                them in the second-level cache
#include "cuda/kernels/ladder/async/specialized.cuh"

namespace fl {
namespace {

template <bool BANDS>
__global__ void __launch_bounds__(SPECIALIZED, 1)
    sgemm_persistent_kernel(const __grid_constant__ SgemmArgs p, unsigned tile_rows, unsigned tile_cols,
                            Operand a_operand, const __grid_constant__ CUtensorMap b_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  SpecializedStages stages(memory, COPYING, MULTIPLYING);
  const auto steps = static_cast<int>(p.k / BoxTiles::BK);
  auto for_each_tile = [&](auto compute) {
    for (unsigned tile = blockIdx.x; tile < tile_rows * tile_cols; tile += gridDim.x) {
      const auto corner = banded_tile(tile, tile_rows, tile_cols, BANDS ? 8u : 1u);
      compute(int64_t{corner.row} * BoxTiles::BM, int64_t{corner.col} * BoxTiles::BN);
    }
  };
  pdl_wait();
  if (threadIdx.x >= MULTIPLYING) {
    ptx::registers_down<COPYING_REGISTERS>();
    for_each_tile([&](int64_t row, int64_t col) { copy_steps(p, stages, a_operand, &b_map, row, col, 0, steps); });
    ptx::wait_copies<0>();
  } else {
    ptx::registers_up<MULTIPLYING_REGISTERS>();
    BoxTiles math(threadIdx.x);
    for_each_tile([&](int64_t row, int64_t col) {
      math.zero();
      multiply_steps(stages, math, steps);
      math.store(p, tile_of_c(p, row, col));
    });
  }
#else
  not_for_this_target();
#endif
}

template <bool BANDS>
void persistent(const SgemmArgs& p, const Context& ctx) {
  CUtensorMap b_map;
  if (!comes_in_boxes(p, b_map)) return sgemm_warp_tiles(p, ctx);
  const auto rows = static_cast<unsigned>(p.m / BoxTiles::BM), cols = static_cast<unsigned>(p.n / BoxTiles::BN);
  const unsigned blocks = std::min(rows * cols, static_cast<unsigned>(ctx.sm_count));
  launch_kernel<sgemm_persistent_kernel<BANDS>>({blocks, SPECIALIZED, SpecializedStages::SHARED_BYTES}, ctx, p, rows,
                                                cols, operand(p.a, p.a.cs, p.a.rs), b_map);
}

}  // namespace

void sgemm_persistent(const SgemmArgs& p, const Context& ctx) { persistent<false>(p, ctx); }
void sgemm_tile_order(const SgemmArgs& p, const Context& ctx) { persistent<true>(p, ctx); }

}  // namespace fl
