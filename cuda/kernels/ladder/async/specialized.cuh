// Steps 13 to 15 of the ladder: four warps copy, eight multiply. Each stage has two barriers: `full` says that its
// bytes have arrived, `empty` that all multiplying threads have read them. No barrier of the whole block is left in the
// main loop, so warps may drift apart by as many steps as there are stages.
#pragma once

#include "cuda/kernels/ladder/async/boxes.cuh"

namespace fl {
namespace {

// 168 registers for each of 384 threads are all that a multiprocessor has. The copying warps keep 56 of theirs, which
// gives the others 224.
constexpr int MULTIPLYING = BoxTiles::THREADS, COPYING = 128, SPECIALIZED = MULTIPLYING + COPYING;
constexpr int MULTIPLYING_REGISTERS = 224, COPYING_REGISTERS = 56;
using SpecializedStages = BoxStages<6>;

// Steps `first` to `first + count - 1` along k of the tile of C whose corner is (row, col): those who copy.
__device__ __forceinline__ void copy_steps(const SgemmArgs& p, SpecializedStages& stages, const Operand& a_operand,
                                           const CUtensorMap* b_map, int64_t row, int64_t col, int first, int count) {
  const int t = static_cast<int>(threadIdx.x) - MULTIPLYING;
  CopyTransposedA<COPYING> copy_a(a_operand, p.a.data + row * p.a.rs + first * BoxTiles::BK, minus_zeros, t);
#pragma unroll 1
  for (int step = first; step < first + count; ++step) {
    ptx::barrier_wait(stages.empty(), stages.parity ^ 1);  // in the first round there is nothing to wait for
    stages.fill(copy_a, b_map, static_cast<int>(col), step * BoxTiles::BK, t == 0);
    stages.next();
  }
}

// The same steps: those who multiply.
__device__ __forceinline__ void multiply_steps(SpecializedStages& stages, BoxTiles& math, int count) {
#pragma unroll 1
  for (int step = 0; step < count; ++step) {
    ptx::barrier_wait(stages.full(), stages.parity);
    math.multiply<SpecializedStages::A_ROW, BoxTiles::BN>(stages.a(), stages.b());
    ptx::barrier_arrive(stages.empty());
    stages.next();
  }
}

// The tile of C whose corner is (row, col). All tiles are whole.
__device__ __forceinline__ BlockTile tile_of_c(const SgemmArgs& p, int64_t row, int64_t col) {
  return {nullptr, nullptr, p.c.data + row * p.c.rs + col, BoxTiles::BM, BoxTiles::BN, true};
}

}  // namespace
}  // namespace fl
