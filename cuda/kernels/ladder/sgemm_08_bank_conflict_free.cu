// Step 8 of the ladder: no two accesses of a warp meet in a bank of shared memory.
//  - As is stored transposed: the eight values of A for one k are two float4 along m, like those of B along n.
//  - The 8 x 8 block of a thread falls into four 4 x 4 quadrants, BM / 2 and BN / 2 apart: threads side by side
//    read 16 bytes apart. A warp is 4 rows of 8 threads and lane bits 0 and 4 count rows: each half of it reads 128
//    neighbouring bytes of Bs and two float4 of As, every lane sharing the address with lane ^ 1 or lane ^ 2, which
//    takes the fewest cycles.
//  - Rows of the tiles are 4 floats longer: storing a float4 along k into a column is free of conflicts too
//    (tiles.cuh).
//
// Tiles wait in registers, so that their loads are under way before the barrier that ends the use of the last ones.
// 256 threads, at most 128 registers, 8.25 KiB of shared memory, two blocks on a multiprocessor, 32 flop per byte.
// What is left: two barriers a K step, and loads that nothing of the own block hides. The next step is
// sgemm_09_double_buffered.cu.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_8 {

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = BM * BN / (TM * TN);

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, 2) sgemm_bank_conflict_free_kernel(SgemmArgs p, TileGrid grid) {
  alignas(16) __shared__ float As[BK][BM + 4];
  alignas(16) __shared__ float Bs[BK][BN + 4];
  const BlockTile block = block_tile<BM, BN>(p, grid);
  const TileLoader4<BK, BM, !TA> load_a(threadIdx.x);
  const TileLoader4<BK, BN, TB> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const int64_t a_step = TA ? BK * lda : BK, b_step = TB ? BK : BK * ldb;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = (warp / 2 * 4 + lane / 16 * 2 + lane % 2) * 4, thread_col = (warp % 2 * 8 + lane / 2 % 8) * 4;

  alignas(16) float acc[TM][TN] = {};
  for (int64_t left = p.k; left > 0; left -= BK) {
    const bool whole = block.whole && left >= BK;
    const float4 a_regs = load_a.fetch(a, whole, k_left(left, BK), block.rows, A_OUTSIDE);
    const float4 b_regs = load_b.fetch(b, whole, k_left(left, BK), block.cols, B_OUTSIDE);
    a += a_step;
    b += b_step;
    __syncthreads();
    load_a.stash(As, a_regs);
    load_b.stash(Bs, b_regs);
    __syncthreads();
#pragma unroll
    for (int l = 0; l < BK; ++l) {
      alignas(16) float a_frag[TM], b_frag[TN];
      for (int i = 0; i < TM; i += 4) copy4(&a_frag[i], &As[l][thread_row + i / 4 * (BM / 2)]);
      for (int j = 0; j < TN; j += 4) copy4(&b_frag[j], &Bs[l][thread_col + j / 4 * (BN / 2)]);
      outer_product(acc, a_frag, b_frag);
    }
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int row = thread_row + i / 4 * (BM / 2) + i % 4;
    if (row < block.rows)
#pragma unroll
      for (int j = 0; j < TN; j += 4) {
        const int col = thread_col + j / 4 * (BN / 2);
        epilogue(p).store4(block.c + row * p.c.rs + col, &acc[i][j], block.cols - col);
      }
  }
}

}  // namespace step_8
}  // namespace

void sgemm_bank_conflict_free(const SgemmArgs& p, const Context& ctx) {
  using namespace step_8;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p, [&](auto TA, auto TB) {
    sgemm_bank_conflict_free_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid);
  });
}

}  // namespace fl
