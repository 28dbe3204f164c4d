// One thread per element, threadIdx.x along a row of A; the shape of the block decides how well B is written.
//
// 32-byte sectors, bytes used per warp (rows of A and B starting on a sector):
//   block     reads  writes
//   64 x 8    100 %  12.5 %   a warp is 32 elements of one row: each goes to a row of B, 4 bytes of a sector
//   32 x 32   100 %  12.5 %   the same warp; the rest of a written sector comes from the other warps of the block
//   16 x 16   100 %  25 %     2 rows of 16
//   8 x 8     100 %  50 %     4 rows of 8: the smallest row that still reads whole sectors, and the most blocks
// Bound: the number of sectors written, up to eight times the bytes. L2 joins the pieces before they go to memory only
// while the warps that complete a sector run close together, and there every piece is a transaction of its own.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {

template <int BX, int BY>
__global__ void __launch_bounds__(BX* BY) transpose_naive_kernel(TransposeArgs p, TileGrid grid) {
  const Tile tile = grid.tile(blockIdx.x);
  const int64_t i = tile.row * BY + threadIdx.y;
  const int64_t j = tile.col * BX + threadIdx.x;
  if (i >= p.m || j >= p.n) return;
  p.b.data[tile.batch * p.b.bs + j * p.b.rs + i] = p.a.data[tile.batch * p.a.bs + i * p.a.rs + j];
}

template <int BX, int BY>
void launch(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, BY, BX);
  transpose_naive_kernel<BX, BY><<<grid.blocks(), dim3(BX, BY), 0, stream(ctx)>>>(p, grid);
}

}  // namespace

void transpose_naive(const TransposeArgs& p, const Context& ctx) { launch<64, 8>(p, ctx); }
void transpose_naive_32x32(const TransposeArgs& p, const Context& ctx) { launch<32, 32>(p, ctx); }
void transpose_naive_16x16(const TransposeArgs& p, const Context& ctx) { launch<16, 16>(p, ctx); }
void transpose_naive_8x8(const TransposeArgs& p, const Context& ctx) { launch<8, 8>(p, ctx); }

}  // namespace fl
