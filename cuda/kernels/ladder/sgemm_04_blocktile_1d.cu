// Step 4 of the ladder: each thread computes four neighbouring columns of one row, with one value of A in a
// register.
//
// 1024 threads in 32 rows of 32, 32 x 128 outputs, 32 steps of k at a time. At most 32 registers, so that two
// blocks fill a multiprocessor; 20 KiB of shared memory. A K step moves 20 KiB for 256 Kflop: 12.8 flop per byte.
//
// A value of As now feeds four FMAs, and a thread passes two barriers in 128 FMAs instead of 32. But every FMA
// still needs a float of Bs of its own, and 128 bytes a cycle feed one of the four FMA pipes: a quarter of the peak
// is the end. The next step, sgemm_05_blocktile_2d.cu, uses the values of B more than once too. The loop over k is
// unrolled as far as registers last.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_4 {

constexpr int BM = 32, BN = 128, BK = 32, TN = 4, THREADS = BM * BN / TN;

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, 2) sgemm_blocktile_1d_kernel(SgemmArgs p, TileGrid grid) {
  __shared__ float As[BM][BK + 4 * TA];
  __shared__ float Bs[BK][BN + 4 * TB];
  const BlockTile block = block_tile<BM, BN>(p, grid);
  const TileLoader1<BM, BK, TA, THREADS> load_a(threadIdx.x);
  const TileLoader1<BK, BN, TB, THREADS> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const int64_t a_step = TA ? BK * lda : BK, b_step = TB ? BK : BK * ldb;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int thread_row = threadIdx.x / (BN / TN), thread_col = threadIdx.x % (BN / TN) * TN;

  float acc[TN] = {};
  for (int64_t left = p.k; left > 0; left -= BK) {
    const bool whole = block.whole && left >= BK;
    const auto a_regs = load_a.fetch(a, lda, whole, block.rows, k_left(left, BK), A_OUTSIDE);
    const auto b_regs = load_b.fetch(b, ldb, whole, k_left(left, BK), block.cols, B_OUTSIDE);
    load_a.stash(As, a_regs);
    load_b.stash(Bs, b_regs);
    a += a_step;
    b += b_step;
    __syncthreads();
#pragma unroll 16
    for (int l = 0; l < BK; ++l) {
      const float a_value = As[thread_row][l];
      for (int j = 0; j < TN; ++j) acc[j] = fmaf(a_value, Bs[l][thread_col + j], acc[j]);
    }
    __syncthreads();
  }

  float* c = block.c + thread_row * p.c.rs + thread_col;
  for (int j = 0; j < TN; ++j)
    if (thread_row < block.rows && thread_col + j < block.cols) epilogue(p).store(&c[j], acc[j]);
}

}  // namespace step_4
}  // namespace

void sgemm_blocktile_1d(const SgemmArgs& p, const Context& ctx) {
  using namespace step_4;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p, [&](auto TA, auto TB) {
    sgemm_blocktile_1d_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid);
  });
}

}  // namespace fl
