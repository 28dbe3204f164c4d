// Tiles through shared memory for any alignment: 4-byte accesses, a warp reads 32 neighbouring elements of a row of A
// and writes 32 of a row of B.
//
// Rows of B that start anywhere would have their sectors cut between the tiles that write them. A block therefore reads
// seven rows of A more than it writes, and writes of each row of B a piece that starts on a sector: none is written by
// two blocks (without that a prototype was 16 % slower, and with 128-byte pieces 2.5 %).
//
// 32-byte sectors: reads as the rows of A lie, 7 of BM rows twice (from L2); writes 100 %. Bank conflicts: none, a
// column of the tile is an odd number of words long. Bound: memory, 8 % under a copy where rows start anywhere, 3 %
// where they are aligned. All loads of a thread are under way before its first word goes to shared memory. Lost: blocks
// of 512 threads with half the loads each (8 %), reads that bypass L1, where neighbouring warps share sectors (10 %).
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {

constexpr int CUT_UNIT = 8;  // floats

template <int BM, int BN, int THREADS>
struct Cut {
  static constexpr int ROWS = BM + CUT_UNIT - 1, PITCH = ROWS | 1, WARPS = THREADS / 32;
  static constexpr int PER_WARP = (ROWS + WARPS - 1) / WARPS;  // rows of A
  using Tile = float[BN][PITCH];
};

// Rows of A from `first` to `last` of the tile exist, and so many columns. FULL: all, and nothing is asked.
template <int BM, int BN, int THREADS, bool FULL>
__device__ __forceinline__ void read_tile(typename Cut<BM, BN, THREADS>::Tile& tile, const float* a, int64_t lda,
                                          int first, int last, int cols) {
  using C = Cut<BM, BN, THREADS>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float part[C::PER_WARP][BN / 32];
#pragma unroll
  for (int k = 0; k < C::PER_WARP; ++k) {
    const int r = warp + k * C::WARPS;
    const bool row = FULL ? k + 1 < C::PER_WARP || r < C::ROWS : r >= first && r < last;
    const float* from = a + r * lda + lane;
#pragma unroll
    for (int q = 0; q < BN / 32; ++q) part[k][q] = row && (FULL || q * 32 + lane < cols) ? __ldg(from + q * 32) : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < C::PER_WARP; ++k) {
    const int r = warp + k * C::WARPS;
#pragma unroll
    for (int q = 0; q < BN / 32; ++q)
      if (k + 1 < C::PER_WARP || r < C::ROWS) tile[q * 32 + lane][r] = part[k][q];
  }
}

template <int BM, int BN, int THREADS>
__global__ void __launch_bounds__(THREADS, 1536 / THREADS) transpose_any_kernel(TransposeArgs p, TileGrid grid) {
  using C = Cut<BM, BN, THREADS>;
  __shared__ typename C::Tile tile;
  pdl_wait();
  const Tile at = grid.tile(blockIdx.x);
  const int64_t i = at.col * BM - (CUT_UNIT - 1), j = at.row * BN;
  const int first = i < 0 ? static_cast<int>(-i) : 0, last = p.m - i < C::ROWS ? static_cast<int>(p.m - i) : C::ROWS;
  const int cols = p.n - j < BN ? static_cast<int>(p.n - j) : BN;
  const float* a = p.a.data + at.batch * p.a.bs + i * p.a.rs + j;
  const bool full = first == 0 && last == C::ROWS && cols == BN;
  if (full) read_tile<BM, BN, THREADS, true>(tile, a, p.a.rs, first, last, cols);
  else read_tile<BM, BN, THREADS, false>(tile, a, p.a.rs, first, last, cols);
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float* to = p.b.data + at.batch * p.b.bs + (j + warp) * p.b.rs + i;
#pragma unroll 4
  for (int c = warp; c < cols; c += C::WARPS, to += C::WARPS * p.b.rs) {
    const int start = -static_cast<int>(reinterpret_cast<uintptr_t>(to) / sizeof(float)) & (CUT_UNIT - 1);
#pragma unroll
    for (int k = 0; k < BM; k += 32) {
      const int r = start + k + lane;
      if (full || (r >= first && r < last)) to[r] = tile[c][r];
    }
  }
}

template <int BM, int BN, int THREADS>
void launch(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.n, p.m + CUT_UNIT - 1, p.batch, BN, BM);
  launch_kernel<transpose_any_kernel<BM, BN, THREADS>>({grid.blocks(), THREADS}, ctx, p, grid);
}

}  // namespace

void transpose_tiled_any(const TransposeArgs& p, const Context& ctx) {
  if (p.n <= 32) return launch<128, 32, 256>(p, ctx);
  if (p.m <= 32 || p.m * p.n * p.batch <= 1 << 16) return launch<32, 32, 128>(p, ctx);
  if (p.m * p.n * p.batch <= 1 << 26) return launch<64, 64, 256>(p, ctx);
  launch<64, 128, 512>(p, ctx);
}

}  // namespace fl
