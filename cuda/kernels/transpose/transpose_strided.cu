// A 32 x 32 tile goes through shared memory; both sides have any strides. Read and written along the smaller one.
//
// This is the one row that takes every view, so it serves what the others cannot: columns with a step, reversed or
// broadcast rows, and an F-ordered A, where the transpose is a plain copy. Copies of operands that no product kernel
// takes as they lie are transposes of a transposed view and come here too, with operands in 16 bits, which become
// float32.
// Bound: memory. With a unit stride on both sides a warp reads and writes 128 neighbouring bytes; with a step of s
// floats it uses 1/s of each sector, down to an eighth.
// Bank conflicts: none. A tile row is one word longer than the 32 banks, so that rows and columns both spread over all.
#include "cuda/kernels/common/halves.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {
namespace {

constexpr int TILE = 32, ROWS = 8, PER_THREAD = TILE / ROWS;

struct Place {
  int row, col;  // of A, inside the tile
};
// Neighbouring threads take neighbouring columns of A, or neighbouring rows.
__device__ __forceinline__ Place place(bool along_columns, int step) {
  const int x = threadIdx.x, y = threadIdx.y + step;
  return along_columns ? Place{y, x} : Place{x, y};
}

// A thread's four elements on the way in or out. FULL tiles ask nothing, so four accesses are in flight.
template <bool FULL, class T>
__device__ __forceinline__ void move(float (&tile)[TILE][TILE + 1], const TransposeArgs& p, const T* a, float* b,
                                     int rows, int cols, bool read_columns, bool write_columns) {
  float element[PER_THREAD];
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const Place from = place(read_columns, k * ROWS);
    if (FULL || (from.row < rows && from.col < cols)) element[k] = load1(a + from.row * p.a.rs + from.col * p.a.cs);
  }
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const Place from = place(read_columns, k * ROWS);
    if (FULL || (from.row < rows && from.col < cols)) tile[from.row][from.col] = element[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < PER_THREAD; ++k) {
    const Place to = place(write_columns, k * ROWS);
    if (FULL || (to.row < rows && to.col < cols)) b[to.col * p.b.rs + to.row * p.b.cs] = tile[to.row][to.col];
  }
}

template <class T>
__global__ void __launch_bounds__(TILE* ROWS)
    transpose_strided_kernel(TransposeArgs p, TileGrid grid, bool read_columns, bool write_columns) {
  __shared__ float tile[TILE][TILE + 1];
  const Tile at = grid.tile(blockIdx.x);
  const int64_t i = at.row * TILE, j = at.col * TILE;
  const T* a = place_of<T>(p.stored[0], p.a.data) + at.batch * p.a.bs + i * p.a.rs + j * p.a.cs;
  float* b = p.b.data + at.batch * p.b.bs + j * p.b.rs + i * p.b.cs;
  const int rows = p.m - i < TILE ? static_cast<int>(p.m - i) : TILE;
  const int cols = p.n - j < TILE ? static_cast<int>(p.n - j) : TILE;
  if (rows == TILE && cols == TILE) move<true>(tile, p, a, b, rows, cols, read_columns, write_columns);
  else move<false>(tile, p, a, b, rows, cols, read_columns, write_columns);
}

constexpr int64_t size(int64_t stride) { return stride < 0 ? -stride : stride; }

}  // namespace

void transpose_strided(const TransposeArgs& p, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, TILE, TILE);
  with_type(p.stored[0], [&](auto number) {
    transpose_strided_kernel<decltype(number)><<<grid.blocks(), dim3(TILE, ROWS), 0, stream(ctx)>>>(
        p, grid, size(p.a.cs) <= size(p.a.rs), size(p.b.rs) < size(p.b.cs));
  });
}

}  // namespace fl
