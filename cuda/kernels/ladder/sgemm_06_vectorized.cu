// Step 6 of the ladder: the tile of step 5 with 128-bit accesses everywhere.
//
// 1024 threads in 32 rows of 32, 128 x 128 outputs, 32 steps of k at a time, 64 registers, 32 KiB of shared memory,
// 32 flop per byte, as before. A thread now moves its share of a tile with one load and one store instead of four
// of each, and stores a row of its results with one. Shared memory is read as float4 along k in As and along n in
// Bs, which the compiler had made of step 5 too.
//
// Operands must be 16-byte aligned. What is left: half a float read from shared memory per FMA, and one block on a
// multiprocessor, idle at every barrier. The next step, sgemm_07_blocktile_8x8.cu, changes both.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_6 {

constexpr int BM = 128, BN = 128, BK = 32, TM = 4, TN = 4, THREADS = BM * BN / (TM * TN);

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, 1) sgemm_vectorized_kernel(SgemmArgs p, TileGrid grid) {
  alignas(16) __shared__ float As[BM][BK + 4 * TA];
  alignas(16) __shared__ float Bs[BK][BN + 4 * TB];
  const BlockTile block = block_tile<BM, BN>(p, grid);
  const TileLoader4<BM, BK, TA> load_a(threadIdx.x);
  const TileLoader4<BK, BN, TB> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const int64_t a_step = TA ? BK * lda : BK, b_step = TB ? BK : BK * ldb;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int thread_row = threadIdx.x / (BN / TN) * TM, thread_col = threadIdx.x % (BN / TN) * TN;

  alignas(16) float acc[TM][TN] = {};
  for (int64_t left = p.k; left > 0; left -= BK) {
    const bool whole = block.whole && left >= BK;
    const float4 a_regs = load_a.fetch(a, whole, block.rows, k_left(left, BK), A_OUTSIDE);
    const float4 b_regs = load_b.fetch(b, whole, k_left(left, BK), block.cols, B_OUTSIDE);
    load_a.stash(As, a_regs);
    load_b.stash(Bs, b_regs);
    a += a_step;
    b += b_step;
    __syncthreads();
#pragma unroll 1
    for (int l0 = 0; l0 < BK; l0 += 4) {
      alignas(16) float a_row[4], a_frag[4][TM], b_frag[TN];
      for (int i = 0; i < TM; ++i) {
        copy4(a_row, &As[thread_row + i][l0]);
        for (int l = 0; l < 4; ++l) a_frag[l][i] = a_row[l];
      }
      for (int l = 0; l < 4; ++l) {
        copy4(b_frag, &Bs[l0 + l][thread_col]);
        outer_product(acc, a_frag[l], b_frag);
      }
    }
    __syncthreads();
  }

  for (int i = 0; i < TM; ++i)
    if (thread_row + i < block.rows)
      epilogue(p).store4(block.c + (thread_row + i) * p.c.rs + thread_col, acc[i], block.cols - thread_col);
}

}  // namespace step_6
}  // namespace

void sgemm_vectorized(const SgemmArgs& p, const Context& ctx) {
  using namespace step_6;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p, [&](auto TA, auto TB) {
    sgemm_vectorized_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid);
  });
}

}  // namespace fl
