// Step 5 of the ladder: each thread computes a 4 x 4 block, so that values of A and of B are used four times each.
//
// 1024 threads in 32 rows of 32, 128 x 128 outputs, 32 steps of k at a time. 64 registers, which is all a block of
// this size can have: one block on a multiprocessor; 32 KiB of shared memory. A K step moves 32 KiB for 1 Mflop: 32
// flop per byte.
//
// Eight floats from shared memory feed 16 FMAs, but nothing else runs while the one block waits for its tiles, and
// those come one float at a time. The next step, sgemm_06_vectorized.cu, moves four. The loop over k is unrolled as
// far as one float4 of a row of As goes (the compiler merges the four loads); unrolling it further spilled
// registers.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_5 {

constexpr int BM = 128, BN = 128, BK = 32, TM = 4, TN = 4, THREADS = BM * BN / (TM * TN);

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, 1) sgemm_blocktile_2d_kernel(SgemmArgs p, TileGrid grid) {
  __shared__ float As[BM][BK + 4 * TA];
  __shared__ float Bs[BK][BN + 4 * TB];
  const BlockTile block = block_tile<BM, BN>(p, grid);
  const TileLoader1<BM, BK, TA, THREADS> load_a(threadIdx.x);
  const TileLoader1<BK, BN, TB, THREADS> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const int64_t a_step = TA ? BK * lda : BK, b_step = TB ? BK : BK * ldb;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int thread_row = threadIdx.x / (BN / TN) * TM, thread_col = threadIdx.x % (BN / TN) * TN;

  float acc[TM][TN] = {};
  for (int64_t left = p.k; left > 0; left -= BK) {
    const bool whole = block.whole && left >= BK;
    const auto a_regs = load_a.fetch(a, lda, whole, block.rows, k_left(left, BK), A_OUTSIDE);
    const auto b_regs = load_b.fetch(b, ldb, whole, k_left(left, BK), block.cols, B_OUTSIDE);
    load_a.stash(As, a_regs);
    load_b.stash(Bs, b_regs);
    a += a_step;
    b += b_step;
    __syncthreads();
#pragma unroll 4
    for (int l = 0; l < BK; ++l) {
      float a_frag[TM], b_frag[TN];
      for (int i = 0; i < TM; ++i) a_frag[i] = As[thread_row + i][l];
      for (int j = 0; j < TN; ++j) b_frag[j] = Bs[l][thread_col + j];
      outer_product(acc, a_frag, b_frag);
    }
    __syncthreads();
  }

  for (int i = 0; i < TM; ++i) {
    float* c = block.c + (thread_row + i) * p.c.rs + thread_col;
    for (int j = 0; j < TN; ++j)
      if (thread_row + i < block.rows && thread_col + j < block.cols) epilogue(p).store(&c[j], acc[i][j]);
  }
}

}  // namespace step_5
}  // namespace

void sgemm_blocktile_2d(const SgemmArgs& p, const Context& ctx) {
  using namespace step_5;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p, [&](auto TA, auto TB) {
    sgemm_blocktile_2d_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid);
  });
}

}  // namespace fl
