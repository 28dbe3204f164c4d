// Step 7 of the ladder: each thread computes an 8 x 8 block, and two blocks share a multiprocessor.
//
// 256 threads in 16 rows of 16, 128 x 128 outputs, 8 steps of k at a time, so that a thread moves one float4 of A
// (row thread / 2) and one of B (row thread / 32). 128 registers, 64 of them sums; 8 KiB of shared memory; 32 flop
// per byte. A quarter of a float read from shared memory per FMA, and while one block waits at a barrier the other
// multiplies.
//
// The price: threads side by side read Bs 32 bytes apart, so that eight float4 fall into half of the banks, two
// into each; and values of A that arrive as float4 along k sit, for one k, in registers of one parity, that is in
// one bank of the register file. The next step, sgemm_08_bank_conflict_free.cu, cures both.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_7 {

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = BM * BN / (TM * TN);

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, code_for<120> ? 1 : 2)
    sgemm_blocktile_8x8_kernel(SgemmArgs p, TileGrid grid) {
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
#pragma unroll(code_for<90, 100> ? 2 : 1)  // what is read early for the next four steps would not fit
    for (int l0 = 0; l0 < BK; l0 += 4) {
      alignas(16) float a_row[4], a_frag[4][TM], b_frag[TN];
      for (int i = 0; i < TM; ++i) {
        copy4(a_row, &As[thread_row + i][l0]);
        for (int l = 0; l < 4; ++l) a_frag[l][i] = a_row[l];
      }
      for (int l = 0; l < 4; ++l) {
        for (int j = 0; j < TN; j += 4) copy4(&b_frag[j], &Bs[l0 + l][thread_col + j]);
        outer_product(acc, a_frag[l], b_frag);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < TM; ++i)
    if (thread_row + i < block.rows)
#pragma unroll
      for (int j = 0; j < TN; j += 4)
        epilogue(p).store4(block.c + (thread_row + i) * p.c.rs + thread_col + j, &acc[i][j],
                           block.cols - thread_col - j);
}

}  // namespace step_7
}  // namespace

void sgemm_blocktile_8x8(const SgemmArgs& p, const Context& ctx) {
  using namespace step_7;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p, [&](auto TA, auto TB) {
    sgemm_blocktile_8x8_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid);
  });
}

}  // namespace fl
