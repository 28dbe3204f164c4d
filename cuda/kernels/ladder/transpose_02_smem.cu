// A 32 x 32 tile goes through shared memory, so that a warp reads a row of A and writes a row of B.
//
// 32-byte sectors: a warp reads 128 neighbouring bytes and writes 128 neighbouring bytes, 100 % used both ways if the
// rows start on a sector. Bank conflicts: none. A tile row is one word longer than the 32 banks: a warp writes word
// 33 r + lane (a row) and reads word 33 lane + r (a column), 32 different banks either way.
// Bound: memory; per tile also the barrier between the two halves, which the other blocks of a multiprocessor hide.
//
// The indices swap twice: the tile at (row, col) of A lands at (col, row) of B, and inside it the thread that read
// column x writes column x of B, which is row x of the tile. Swap only one of them and the writes go down a column.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {

constexpr int TILE = 32, ROWS = 8, PER_THREAD = TILE / ROWS;

// Reads or writes as many of a thread's four rows as there are; FULL tiles ask nothing, so four accesses are in flight.
template <bool FULL>
__device__ __forceinline__ void turn(float (&tile)[TILE][TILE + 1], const float* a, int64_t lda, float* b, int64_t ldb,
                                     int rows, int cols) {
  const int x = threadIdx.x, y = threadIdx.y;
  float row[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int r = y + k * ROWS;
    if (FULL || (r < rows && x < cols)) row[k] = __ldg(a + r * lda + x);
  }
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int r = y + k * ROWS;
    if (FULL || (r < rows && x < cols)) tile[r][x] = row[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const int r = y + k * ROWS;
    if (FULL || (r < cols && x < rows)) b[r * ldb + x] = tile[x][r];
  }
}

__global__ void __launch_bounds__(TILE* ROWS) transpose_smem_kernel(TransposeArgs p, TileGrid grid) {
  __shared__ float tile[TILE][TILE + 1];
  const Tile at = grid.tile(blockIdx.x);
  const int64_t i = at.row * TILE, j = at.col * TILE;
  const float* a = p.a.data + at.batch * p.a.bs + i * p.a.rs + j;
  float* b = p.b.data + at.batch * p.b.bs + j * p.b.rs + i;
  const int rows = p.m - i < TILE ? static_cast<int>(p.m - i) : TILE;
  const int cols = p.n - j < TILE ? static_cast<int>(p.n - j) : TILE;
  if (rows == TILE && cols == TILE) turn<true>(tile, a, p.a.rs, b, p.b.rs, rows, cols);
  else turn<false>(tile, a, p.a.rs, b, p.b.rs, rows, cols);
}

}  // namespace

void transpose_smem(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, TILE, TILE);
  transpose_smem_kernel<<<grid.blocks(), dim3(TILE, ROWS), 0, stream(ctx)>>>(p, grid);
}

}  // namespace fl
