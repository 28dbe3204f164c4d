// Tiles through shared memory with 16-byte accesses in all four directions: transpose_staging.cuh says how.
//
// Bound: memory, 3 % under a copy from 4096 x 4096 on.
//
// Up to 8 MB small tiles: many small blocks hide each other's barrier. Above, 64 x 64, numbered down the rows of A, so
// that neighbouring blocks write neighbouring pieces of the same rows of B (numbered along: up to 3 % slower in a
// prototype), and stores that do not stay in L2 (ordinary ones: 2.5 %). Thin matrices take tiles of their own width.
// Lost: patches turned without shared memory (14 %), 32 x 32 tiles for large matrices (8 %); in a prototype a diagonal
// order (3 %).
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/transpose/transpose_staging.cuh"

namespace fl {
namespace {

// FULL: the tile does not lie across an edge, and nothing is asked.
template <int BM, int BN, int THREADS, bool STREAM, bool FULL>
__device__ __forceinline__ void turn(float4 (&tile)[BM * BN / 4], const float* a, int64_t lda, float* b, int64_t ldb,
                                     int rows, int cols) {
  using S = Staging<BM, BN, THREADS>;
  typename S::Patches patches;
  patches.template fetch<FULL>(a, lda, rows, cols);
  patches.stash(tile);
  __syncthreads();
  S::template write<STREAM, FULL>(tile, b, ldb, rows, cols);
}

// `grid` numbers tiles down the rows of A: its rows are columns of A.
template <int BM, int BN, int THREADS, bool STREAM>
__global__ void __launch_bounds__(THREADS) transpose_tiled_kernel(TransposeArgs p, TileGrid grid) {
  __shared__ float4 tile[BM * BN / 4];
  pdl_wait();
  const Tile at = grid.tile(blockIdx.x);
  const int64_t i = at.col * BM, j = at.row * BN;
  const float* a = p.a.data + at.batch * p.a.bs + i * p.a.rs + j;
  float* b = p.b.data + at.batch * p.b.bs + j * p.b.rs + i;
  const int rows = p.m - i < BM ? static_cast<int>(p.m - i) : BM;
  const int cols = p.n - j < BN ? static_cast<int>(p.n - j) : BN;
  if (rows == BM && cols == BN) turn<BM, BN, THREADS, STREAM, true>(tile, a, p.a.rs, b, p.b.rs, rows, cols);
  else turn<BM, BN, THREADS, STREAM, false>(tile, a, p.a.rs, b, p.b.rs, rows, cols);
}

template <int BM, int BN, int THREADS, bool STREAM>
void launch(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.n, p.m, p.batch, BN, BM);
  launch_kernel<transpose_tiled_kernel<BM, BN, THREADS, STREAM>>({grid.blocks(), THREADS}, ctx, p, grid);
}

}  // namespace

void transpose_tiled(const TransposeArgs& p, const Context& ctx) {
  const bool small = p.m * p.n * p.batch <= stays_in_l2;
  if (p.m <= 32 && p.n <= 32) return launch<32, 32, 64, false>(p, ctx);  // also of large batches
  if (p.n <= 16) return small ? launch<64, 16, 64, false>(p, ctx) : launch<128, 16, 128, true>(p, ctx);
  if (p.m <= 16) return small ? launch<16, 64, 64, false>(p, ctx) : launch<16, 128, 128, true>(p, ctx);
  if (p.n <= 32 && !small) return launch<128, 32, 256, true>(p, ctx);
  if (p.m <= 32 && !small) return launch<32, 128, 256, true>(p, ctx);
  small ? launch<32, 32, 64, false>(p, ctx) : launch<64, 64, 256, true>(p, ctx);
}

}  // namespace fl
