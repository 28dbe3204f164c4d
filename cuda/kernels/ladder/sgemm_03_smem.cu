// Step 3 of the ladder: tiles of A and B are staged in shared memory, so that an element fetched once serves 32
// outputs.
//
// 1024 threads, 32 x 32 outputs, 32 steps of k at a time: load the two tiles, barrier, multiply, barrier. At most
// 32 registers, so that two blocks fill a multiprocessor; 8 KiB of shared memory (up to 9 with padding). A K step
// moves 8 KiB from global memory for 64 Kflop: 8 flop per byte.
//
// Now shared memory stands in the way: it serves one warp a cycle, and every FMA of a warp needs a row of Bs, and,
// as the compiler fetches four k of As at once, a quarter of another access: at best a fifth of what the FMA pipes
// can do. The next step, sgemm_04_blocktile_1d.cu, needs fewer accesses per FMA.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_3 {

constexpr int BM = 32, BN = 32, BK = 32, THREADS = BM * BN;

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, 2) sgemm_smem_kernel(SgemmArgs p, TileGrid grid) {
  __shared__ float As[BM][BK + 4 * TA];
  __shared__ float Bs[BK][BN + 4 * TB];
  const BlockTile block = block_tile<BM, BN>(p, grid);
  const TileLoader1<BM, BK, TA, THREADS> load_a(threadIdx.x);
  const TileLoader1<BK, BN, TB, THREADS> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const int64_t a_step = TA ? BK * lda : BK, b_step = TB ? BK : BK * ldb;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int thread_row = threadIdx.x / BN, thread_col = threadIdx.x % BN;

  float acc = 0.0f;
  for (int64_t left = p.k; left > 0; left -= BK) {
    const bool whole = block.whole && left >= BK;
    const auto a_regs = load_a.fetch(a, lda, whole, block.rows, k_left(left, BK), A_OUTSIDE);
    const auto b_regs = load_b.fetch(b, ldb, whole, k_left(left, BK), block.cols, B_OUTSIDE);
    load_a.stash(As, a_regs);
    load_b.stash(Bs, b_regs);
    a += a_step;
    b += b_step;
    __syncthreads();
#pragma unroll
    for (int l = 0; l < BK; ++l) acc = fmaf(As[thread_row][l], Bs[l][thread_col], acc);
    __syncthreads();
  }

  if (thread_row < block.rows && thread_col < block.cols) {
    float* c = block.c + thread_row * p.c.rs + thread_col;
    epilogue(p).store(c, acc);
  }
}

}  // namespace step_3
}  // namespace

void sgemm_smem(const SgemmArgs& p, const Context& ctx) {
  using namespace step_3;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p,
           [&](auto TA, auto TB) { sgemm_smem_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid); });
}

}  // namespace fl
