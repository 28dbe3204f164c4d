// Steps 10, 11 and 16 of the ladder: tiles go from global to shared memory by asynchronous copies (cp.async), several
// steps of k ahead of the arithmetic.
//
// A copy does not pass through registers, and the thread that issues it goes on at once. Copies are counted in groups,
// one for each step: `wait_copies<N>` waits until all but the latest N groups of this thread have arrived, and the
// barrier behind it until those of all threads have. The same barrier says that the stage which is filled next has been
// read by all: one barrier a step, as in step 9. A copy cannot transpose 16 bytes, so a row-major A arrives by copies
// of 4 bytes each (TileCopy).
#pragma once

#include "cuda/kernels/ladder/async/warp_tiles.cuh"

namespace fl {
namespace {

template <class T, int STAGES>
struct AsyncCopies {
  using CopyA = TileCopy<T::BK, T::BM, T::THREADS, Tail::of_lines, 1, false, false, 64>;
  using CopyB = TileCopy<T::BK, T::BN, T::THREADS, Tail::of_lines, 1, false, false, 64>;
  static constexpr int STAGE_BYTES = CopyA::BYTES + CopyB::BYTES, SHARED_BYTES = STAGES * STAGE_BYTES;

  static __device__ __forceinline__ void block(const SgemmArgs& p, const TileGrid& grid, const Operand& a_operand,
                                               const Operand& b_operand, bool c_by16) {
    extern __shared__ __align__(128) unsigned char memory[];
    const uint32_t shared = ptx::shared_address(memory);
    const BlockTile block = block_tile<T::BM, T::BN>(p, grid);
    CopyA copy_a(a_operand, block.a, minus_zeros, threadIdx.x);
    CopyB copy_b(b_operand, block.b, plus_zeros, threadIdx.x);
    copy_a.length = block.rows, copy_b.length = block.cols;
    const int64_t steps = ceil_div(p.k, T::BK);
    auto fetch = [&](int64_t step, int stage) {
      if (step < steps) {
        copy_a.lines = copy_b.lines = k_left(p.k - step * T::BK, T::BK);
        copy_a(shared + stage * STAGE_BYTES);
        copy_b(shared + stage * STAGE_BYTES + CopyA::BYTES);
        copy_a.next_lines();
        copy_b.next_lines();
      }
      ptx::commit_copies();  // of nothing, behind the last step: a group for each step all the same
    };

    pdl_wait();
    for (int step = 0; step < STAGES - 1; ++step) fetch(step, step);
    T math(threadIdx.x);
    math.zero();
    int stage = 0;
#pragma unroll 1
    for (int64_t step = 0; step < steps; ++step) {
      ptx::wait_copies<STAGES - 2>();
      __syncthreads();
      fetch(step + STAGES - 1, stage == 0 ? STAGES - 1 : stage - 1);
      const uint32_t a = shared + stage * STAGE_BYTES;
      math.template multiply<CopyA::LD, CopyB::LD>(a, a + CopyA::BYTES);
      stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    math.store(p, block, c_by16);
  }
};

// So many stages, and blocks on a multiprocessor.
template <class T, int STAGES, int BLOCKS>
__global__ void __launch_bounds__(T::THREADS, BLOCKS)
    sgemm_async_copies_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, Operand a, Operand b, bool c_by16) {
#if __CUDA_ARCH__ >= 800
  AsyncCopies<T, STAGES>::block(p, grid, a, b, c_by16);
#else
  not_for_this_target();
#endif
}

template <class T, int STAGES, int BLOCKS>
void launch_async_copies(const SgemmArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, T::BM, T::BN);
  launch_kernel<sgemm_async_copies_kernel<T, STAGES, BLOCKS>>(
      {grid.blocks(), T::THREADS, AsyncCopies<T, STAGES>::SHARED_BYTES}, ctx, p, grid, operand(p.a, p.a.cs, p.a.rs),
      operand(p.b, p.b.rs, p.b.cs), aligned16(p.c));
}

}  // namespace
}  // namespace fl
