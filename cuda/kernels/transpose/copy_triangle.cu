// One triangle of square matrices, copied as it lies: 32 x 32 tiles, four elements to a thread. No row of the table: it
// moves what a product has computed, or is to add to, for one triangle of its result (cpp/run/triangle.cpp).
//
// Only tiles with a part in the triangle have a block, unless what is beside it becomes zero.
// Bound: memory. A warp writes 32 neighbouring elements of a row, and reads as many if the source lies by rows. If it
// lies by columns, the eight warps of a block read the eight elements of a sector, once from L2 and then from L1.
#include "core/triangle_copy.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {

constexpr int SQUARE = 32, SQUARE_WARPS = 8, EACH = SQUARE / SQUARE_WARPS;

// Of one matrix, the tile with this number: of all, row by row, or of those with a part in the triangle.
__device__ __forceinline__ TileCorner<unsigned> tile_of(const TriangleCopy& p, unsigned number) {
  if (p.other == OtherTriangle::zero) {
    const auto side = static_cast<unsigned>(ceil_div(p.n, SQUARE));
    return {number / side, number % side};
  }
  const unsigned longer = triangle_row(number), shorter = number - longer * (longer + 1) / 2;
  return p.part == Triangle::lower ? TileCorner<unsigned>{longer, shorter} : TileCorner<unsigned>{shorter, longer};
}

__global__ void __launch_bounds__(SQUARE_WARPS * 32) copy_triangle_kernel(TriangleCopy p, unsigned tiles) {
  pdl_wait();
  const unsigned problem = blockIdx.x / tiles;
  const TileCorner<unsigned> tile = tile_of(p, blockIdx.x % tiles);
  const int64_t row = static_cast<int64_t>(tile.row) * SQUARE + threadIdx.x / 32;
  const int64_t col = static_cast<int64_t>(tile.col) * SQUARE + threadIdx.x % 32;
  if (col >= p.n) return;
  const auto inside = [&](int64_t i) { return i < p.n && (p.part == Triangle::lower ? i >= col : i <= col); };
  const float* from = p.from.data + problem * p.from.bs + row * p.from.rs + col * p.from.cs;
  float* to = p.to.data + problem * p.to.bs + row * p.to.rs + col * p.to.cs;
  float element[EACH];
#pragma unroll
  for (int k = 0; k < EACH; ++k)
    element[k] = inside(row + k * SQUARE_WARPS) ? from[k * SQUARE_WARPS * p.from.rs] : 0.0f;
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const int64_t i = row + k * SQUARE_WARPS;
    if (inside(i) || (p.other == OtherTriangle::zero && i < p.n)) to[k * SQUARE_WARPS * p.to.rs] = element[k];
  }
}

}  // namespace

void copy_triangle(const TriangleCopy& p, const Context& ctx) {
  const auto side = static_cast<unsigned>(ceil_div(p.n, SQUARE));
  const unsigned tiles = p.other == OtherTriangle::zero ? side * side : side * (side + 1) / 2;
  launch_kernel<copy_triangle_kernel>({tiles * static_cast<unsigned>(p.batch), SQUARE_WARPS * 32}, ctx, p, tiles);
}

}  // namespace fl
