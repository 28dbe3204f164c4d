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

struct Unit {
  unsigned tile;
  int first, count;  // steps along k; none: the unit does not exist
};

// What a block has to do, in this order: units 0 to waves + 2. A share is less than two tiles, so one at most is whole.
__device__ __forceinline__ Unit unit(const Shares& s, unsigned number) {
  const unsigned whole = s.waves * gridDim.x, rest = s.tile_rows * s.tile_cols - whole;
  const auto first = static_cast<unsigned>(uint64_t{blockIdx.x} * rest * s.steps / gridDim.x);
  const auto last = static_cast<unsigned>((uint64_t{blockIdx.x} + 1) * rest * s.steps / gridDim.x);
  const int all = static_cast<int>(s.steps), before = static_cast<int>(first % s.steps);
  if (number == 0) return {whole + last / s.steps, 0, static_cast<int>(last % s.steps)};
  if (number <= s.waves) return {(number - 1) * gridDim.x + blockIdx.x, 0, all};
  const unsigned next = (first + s.steps - 1) / s.steps;
  if (number == s.waves + 1) return {whole + next, 0, next < last / s.steps ? all : 0};
  return {whole + first / s.steps, before, before ? all - before : 0};
}

// Calls compute(row, col, first step, steps) for each.
template <class Compute>
__device__ __forceinline__ void for_each_unit(const Shares& s, Compute compute) {
#pragma unroll 1
  for (unsigned number = 0; number < s.waves + 3; ++number) {
    const Unit u = unit(s, number);
    const auto corner = banded_tile(u.tile, s.tile_rows, s.tile_cols, 8u);
    if (u.count > 0) compute(int64_t{corner.row} * BoxTiles::BM, int64_t{corner.col} * BoxTiles::BN, u.first, u.count);
  }
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
  const auto steps = static_cast<unsigned>(p.k / BoxTiles::BK);
  const auto blocks = static_cast<unsigned>(std::min(int64_t{ctx.sm_count}, STREAM_K_BLOCKS));
  // A share has to be a tile at least, or both parts of a tile would be under way at once, and a step less than two.
  const unsigned waves = rows * cols / blocks - 1, rest = rows * cols - waves * blocks;
  const bool pays = rows * cols >= blocks && uint64_t{rest} * steps + blocks <= 2 * uint64_t{blocks} * steps;
  CUtensorMap b_map;
  if (stream_k_step_bytes(p) == 0 || !pays || !comes_in_boxes(p, b_map)) return sgemm_tile_order(p, ctx);
  auto* const sums = static_cast<float4*>(ctx.workspace);
  auto* const saved = reinterpret_cast<unsigned*>(sums + std::size_t{blocks} * BoxTiles::BM * BoxTiles::BN / 4);
  clear_saved(saved, blocks, ctx);
  launch_kernel<sgemm_stream_k_kernel>({blocks, SPECIALIZED, SpecializedStages::SHARED_BYTES}, ctx, p,
                                       Shares{rows, cols, waves, steps, sums, saved}, operand(p.a, p.a.cs, p.a.rs),
                                       b_map);
}

}  // namespace fl
