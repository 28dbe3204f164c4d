// Step 9 of the ladder: the next K step is fetched while this one is multiplied, with one barrier a step.
//
// Two tiles of each operand: the loads for step s + 1 start before step s is multiplied, wait in registers, and go
// into the other tiles just before the last of the eight k. Those tiles held step s - 1, and every warp read its
// last fragments of it before the barrier of that step, so one barrier serves both ways. Fragments have two buffers
// too: those of the next k are read while this one is multiplied, across the barrier as well. Behind the last step
// there is a fetch of nothing, which costs less than a special case.
//
// 256 threads, at most 128 registers (64 sums, 32 fragments, 8 floats on their way), 16.5 KiB of shared memory, two
// blocks on a multiprocessor, 32 flop per byte. Seven of eight instructions of the main loop are FMAs; the reads
// from shared memory, a quarter of a float per FMA, hold the rest of the issue time. What comes after the ladder
// has larger thread tiles.
#include "cuda/kernels/common/tiles.cuh"

namespace fl {
namespace {
namespace step_9 {

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = BM * BN / (TM * TN);

template <bool TA, bool TB>
__global__ void __launch_bounds__(THREADS, code_for<120> ? 1 : 2)
    sgemm_double_buffered_kernel(SgemmArgs p, TileGrid grid) {
  alignas(16) __shared__ float As[2][BK][BM + 4];
  alignas(16) __shared__ float Bs[2][BK][BN + 4];
  const BlockTile block = block_tile<BM, BN>(p, grid);
  const TileLoader4<BK, BM, !TA> load_a(threadIdx.x);
  const TileLoader4<BK, BN, TB> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const int64_t a_step = TA ? BK * lda : BK, b_step = TB ? BK : BK * ldb;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = (warp / 2 * 4 + lane / 16 * 2 + lane % 2) * 4, thread_col = (warp % 2 * 8 + lane / 2 % 8) * 4;

  alignas(16) float acc[TM][TN] = {}, a_frag[2][TM], b_frag[2][TN];
  auto load_fragments = [&](int into, int stage, int l) {
    for (int i = 0; i < TM; i += 4) copy4(&a_frag[into][i], &As[stage][l][thread_row + i / 4 * (BM / 2)]);
    for (int j = 0; j < TN; j += 4) copy4(&b_frag[into][j], &Bs[stage][l][thread_col + j / 4 * (BN / 2)]);
  };

  bool whole = block.whole && p.k >= BK;
  int stage = 0;
  load_a.stash(As[stage], load_a.fetch(a, whole, k_left(p.k, BK), block.rows, A_OUTSIDE));
  load_b.stash(Bs[stage], load_b.fetch(b, whole, k_left(p.k, BK), block.cols, B_OUTSIDE));
  __syncthreads();
  load_fragments(0, stage, 0);
  for (int64_t left = p.k; left > 0; left -= BK) {
    whole = block.whole && left >= 2 * BK;
    a += a_step;
    b += b_step;
    const float4 a_regs = load_a.fetch(a, whole, k_left(left - BK, BK), block.rows, A_OUTSIDE);
    const float4 b_regs = load_b.fetch(b, whole, k_left(left - BK, BK), block.cols, B_OUTSIDE);
#pragma unroll
    for (int l = 0; l < BK; ++l) {
      if (l == BK - 1) {
        stage ^= 1;
        load_a.stash(As[stage], a_regs);
        load_b.stash(Bs[stage], b_regs);
        __syncthreads();
      }
      load_fragments((l + 1) % 2, stage, (l + 1) % BK);
      outer_product(acc, a_frag[l % 2], b_frag[l % 2]);
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

}  // namespace step_9
}  // namespace

void sgemm_double_buffered(const SgemmArgs& p, const Context& ctx) {
  using namespace step_9;
  const TileGrid grid(p.m, p.n, p.batch, BM, BN);
  by_order(p, [&](auto TA, auto TB) {
    sgemm_double_buffered_kernel<TA, TB><<<grid.blocks(), THREADS, 0, stream(ctx)>>>(p, grid);
  });
}

}  // namespace fl
