// Step 15 of the ladder: the tiles of a last wave that is not full are cut along k, so that all blocks end together.
//
// Whole waves go to the blocks tile by tile, as in step 14. The tiles behind them, put end to end, are one long row of
// steps along k, of which each block has an equal share, one to two tiles long. Where a border between two shares falls
// inside a tile, its lower k belong to one block, which computes them first of all and saves the sums; its upper k
// belong to the next block, which comes to them last and goes on from these sums. So nobody waits, and every output is
// one chain of FMAs in ascending k, the same bits as without the cuts.
#include "cuda/kernels/ladder/async/specialized.cuh"
#include "plan/ladder_plan.h"

namespace fl {

void sgemm_tile_order(const SgemmArgs& p, const Context& ctx);
void clear_saved(unsigned* saved, unsigned count, const Context& ctx);  // sgemm_strict/stream_k.cu

namespace {

__device__ __forceinline__ float4 four(const float* sums) { return {sums[0], sums[1], sums[2], sums[3]}; }

struct Shares {
  unsigned tile_rows, tile_cols, waves, steps;  // whole waves; steps along k of a tile
  float4* sums;                                 // of a tile, for each block
  unsigned* saved;                              // for each block, whether they are there
};

// Calls compute(row, col, first step, steps) for all that the block has to do, in this order.
template <class Compute>
__device__ __forceinline__ void for_each_unit(const Shares& s, Compute compute) {
  const unsigned whole = s.waves * gridDim.x, rest = s.tile_rows * s.tile_cols - whole;
  const auto first = static_cast<unsigned>(uint64_t{blockIdx.x} * rest * s.steps / gridDim.x);
  const auto last = static_cast<unsigned>((uint64_t{blockIdx.x} + 1) * rest * s.steps / gridDim.x);
  auto part = [&](unsigned tile, unsigned from, unsigned to) {
    const auto corner = banded_tile(tile, s.tile_rows, s.tile_cols, 8u);
    if (from < to)
      compute(int64_t{corner.row} * BoxTiles::BM, int64_t{corner.col} * BoxTiles::BN, int(from), int(to - from));
  };
  const unsigned next = (first + s.steps - 1) / s.steps;  // the first tile that begins in this share
  if (last % s.steps) part(whole + last / s.steps, 0, last % s.steps);
  for (unsigned wave = 0; wave < s.waves; ++wave) part(wave * gridDim.x + blockIdx.x, 0, s.steps);
  for (unsigned tile = next; tile < last / s.steps; ++tile) part(whole + tile, 0, s.steps);
  if (first % s.steps) part(whole + first / s.steps, first % s.steps, s.steps);
}

__global__ void __launch_bounds__(SPECIALIZED, 1)
    sgemm_stream_k_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ Shares shares, Operand a_operand,
                          const __grid_constant__ CUtensorMap b_map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  SpecializedStages stages(memory, COPYING, MULTIPLYING);
  pdl_wait();
  if (threadIdx.x >= MULTIPLYING) {
    ptx::registers_down<COPYING_REGISTERS>();
    for_each_unit(shares, [&](int64_t row, int64_t col, int first, int count) {
      copy_steps(p, stages, a_operand, &b_map, row, col, first, count);
    });
    ptx::wait_copies<0>();
  } else {
    ptx::registers_up<MULTIPLYING_REGISTERS>();
    BoxTiles math(threadIdx.x);
    constexpr int QUADS = BoxTiles::TM * BoxTiles::TN / 4;
    const std::size_t of_block = std::size_t{QUADS} * MULTIPLYING;
    for_each_unit(shares, [&](int64_t row, int64_t col, int first, int count) {
      math.zero();
      if (first > 0) {
        while (ptx::load_acquire(shares.saved + blockIdx.x - 1) == 0) {
        }
        const float4* from = shares.sums + (blockIdx.x - 1) * of_block + threadIdx.x;
#pragma unroll
        for (int q = 0; q < QUADS; ++q) unpack(math.quad(q), __ldcg(from + q * MULTIPLYING));
      }
      multiply_steps(stages, math, count);
      if (first + count == static_cast<int>(shares.steps)) return math.store(p, tile_of_c(p, row, col));
      float4* to = shares.sums + blockIdx.x * of_block + threadIdx.x;
#pragma unroll
      for (int q = 0; q < QUADS; ++q) __stcg(to + q * MULTIPLYING, four(math.quad(q)));
      ptx::named_barrier<1, MULTIPLYING>();
      if (threadIdx.x == 0) ptx::store_release(shares.saved + blockIdx.x, 1);
    });
  }
#else
  not_for_this_target();
#endif
}

}  // namespace

void sgemm_stream_k(const SgemmArgs& p, const Context& ctx) {
  const auto rows = static_cast<unsigned>(p.m / BoxTiles::BM), cols = static_cast<unsigned>(p.n / BoxTiles::BN);
  const auto blocks = static_cast<unsigned>(std::min(int64_t{ctx.sm_count}, STREAM_K_BLOCKS));
  CUtensorMap b_map;
  // With a share shorter than a tile both parts of a tile would be under way at once.
  if (stream_k_step_bytes(p) == 0 || rows * cols < blocks || !comes_in_boxes(p, b_map)) return sgemm_tile_order(p, ctx);
  auto* const sums = static_cast<float4*>(ctx.workspace);
  auto* const saved = reinterpret_cast<unsigned*>(sums + std::size_t{blocks} * BoxTiles::BM * BoxTiles::BN / 4);
  clear_saved(saved, blocks, ctx);
  const Shares shares{rows, cols, rows * cols / blocks - 1, static_cast<unsigned>(p.k / BoxTiles::BK), sums, saved};
  launch_kernel<sgemm_stream_k_kernel>({blocks, SPECIALIZED, SpecializedStages::SHARED_BYTES}, ctx, p, shares,
                                       operand(p.a, p.a.cs, p.a.rs), b_map);
}

}  // namespace fl
