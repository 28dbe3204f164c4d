// A square matrix transposed onto itself: a block takes a tile above the diagonal and its mirror image below, holds
// both in shared memory and writes each where the other was. What it reads nobody else writes, so no order among blocks
// is needed. Two matrices come one tile to a block, so that this row takes what the others take.
//
// Bound: memory, each element is read once and written once. 16-byte accesses in all four directions where rows are
// aligned (transpose_staging.cuh), else 4-byte ones, a warp on 32 neighbours of a row.
// Aligned, 3.9 TB/s at 8192 x 8192 on an H200 (137 us; `tiled`, to elsewhere, 131); rows that start anywhere 3.0 TB/s
// at 10007 x 10007 (271; 207): their sectors are cut between tiles. Lost: 32 x 32 tiles for large matrices (4 to 10 %
// aligned, 20 % else), 64 x 64 for small ones (16 to 50 %); for rows that start anywhere 512 threads (9 %) or 1024 (10
// %), fewer blocks at a time (5 %), reads past L1 (1 %).
//
// The pairs of a T x T grid of tiles lie in a rectangle without holes: column j of the lower triangle, with the
// diagonal, stands on top of column T-1-j (T even) or T-j (T odd), and together they are as high as any other such two.
#include "core/layout.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/transpose/transpose_staging.cuh"

namespace fl {
namespace {

// One tile of A and where its transpose goes; rows x cols of it exist.
struct Part {
  const float* a;
  float* b;
  int rows, cols;
};

template <int TILE>
__device__ __forceinline__ int clipped(int64_t size, int64_t first) {
  return size - first < TILE ? static_cast<int>(size - first) : TILE;
}
template <int TILE>
__device__ __forceinline__ Part part_at(const TransposeArgs& p, const Tile& at) {
  const int64_t i = at.row * TILE, j = at.col * TILE;
  return {p.a.data + at.batch * p.a.bs + i * p.a.rs + j, p.b.data + at.batch * p.b.bs + j * p.b.rs + i,
          clipped<TILE>(p.m, i), clipped<TILE>(p.n, j)};
}

// ---------------------------------------------------------------- a tile on its way
template <int TILE, int THREADS, bool STREAM>
struct ByFour {
  using S = Staging<TILE, TILE, THREADS>;
  using Shared = typename S::Tile;
  typename S::Patches patches;

  template <bool FULL>
  __device__ __forceinline__ void fetch(const Part& part, int64_t lda) {
    patches.template fetch<FULL, false>(part.a, lda, part.rows, part.cols);
  }
  __device__ __forceinline__ void stash(Shared& tile) const { patches.stash(tile); }
  template <bool FULL>
  static __device__ __forceinline__ void write(const Shared& tile, const Part& part, int64_t ldb) {
    S::template write<STREAM, FULL>(tile, part.b, ldb, part.rows, part.cols);
  }
};

// A row of the tile is an odd number of words long: rows and columns spread over all banks.
template <int TILE, int THREADS, bool>
struct ByOne {
  static constexpr int STEP = THREADS / TILE, COUNT = TILE / STEP;
  using Shared = float[TILE][TILE + 1];
  float of[COUNT];

  template <bool FULL>
  __device__ __forceinline__ void fetch(const Part& part, int64_t lda) {
    const int col = threadIdx.x % TILE, row = threadIdx.x / TILE;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
      const int r = row + k * STEP;
      of[k] = FULL || (r < part.rows && col < part.cols) ? part.a[r * lda + col] : 0.0f;
    }
  }
  __device__ __forceinline__ void stash(Shared& tile) const {
    const int col = threadIdx.x % TILE, row = threadIdx.x / TILE;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) tile[row + k * STEP][col] = of[k];
  }
  template <bool FULL>
  static __device__ __forceinline__ void write(const Shared& tile, const Part& part, int64_t ldb) {
    const int row = threadIdx.x % TILE, col = threadIdx.x / TILE;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
      const int c = col + k * STEP;
      if (FULL || (c < part.cols && row < part.rows)) part.b[c * ldb + row] = tile[row][c];
    }
  }
};

// ---------------------------------------------------------------- the pairs
// Both tiles of a pair have been read when the first is written.
template <class Way, bool FULL>
__device__ __forceinline__ void exchange(typename Way::Shared (&tile)[2], const Part& one, const Part& other, bool two,
                                         const TransposeArgs& p) {
  Way first, second;
  first.template fetch<FULL>(one, p.a.rs);
  if (two) second.template fetch<FULL>(other, p.a.rs);
  first.stash(tile[0]);
  if (two) second.stash(tile[1]);
  __syncthreads();
  Way::template write<FULL>(tile[0], one, p.b.rs);
  if (two) Way::template write<FULL>(tile[1], other, p.b.rs);
}

// `tiles` along a side: the grid counts pairs as described above. 0: every tile of A by itself.
template <class Way, int TILE, int THREADS, int RESIDENT>
__global__ void __launch_bounds__(THREADS, code_for<100, 120>&& RESIDENT == 5 ? 4 : RESIDENT)
    transpose_pairs_kernel(TransposeArgs p, TileGrid grid, int tiles) {
  __shared__ typename Way::Shared tile[2];
  pdl_wait();
  Tile at = grid.tile(blockIdx.x);
  if (tiles) {
    const int even = tiles % 2 == 0;
    if (at.row >= at.col + even) at.row -= even;
    else at = {at.batch, tiles - 1 - at.row, tiles - even - at.col};
  }
  const bool two = tiles && at.row != at.col;
  const Part one = part_at<TILE>(p, at), other = part_at<TILE>(p, {at.batch, at.col, at.row});
  if (one.rows == TILE && one.cols == TILE) exchange<Way, true>(tile, one, other, two, p);
  else exchange<Way, false>(tile, one, other, two, p);
}

template <template <int, int, bool> class Way, int TILE, int THREADS, bool STREAM, int RESIDENT = 0>
void launch(const TransposeArgs& p, const Context& ctx) {
  const bool pairs = p.in_place;
  const int tiles = pairs ? static_cast<int>(ceil_div(p.m, TILE)) : 0;
  const TileGrid grid =
      pairs ? TileGrid(tiles | 1, (tiles + 1) / 2, p.batch, 1, 1) : TileGrid(p.m, p.n, p.batch, TILE, TILE);
  launch_kernel<transpose_pairs_kernel<Way<TILE, THREADS, STREAM>, TILE, THREADS, RESIDENT>>({grid.blocks(), THREADS},
                                                                                             ctx, p, grid, tiles);
}

}  // namespace

void transpose_in_place(const TransposeArgs& p, const Context& ctx) {
  const int64_t size = p.m * p.n * p.batch;
  const bool few = p.m <= 32 && p.n <= 32;
  if (aligned16(p.a) && aligned16(p.b))
    return few || size <= stays_in_l2 ? launch<ByFour, 32, 64, false>(p, ctx) : launch<ByFour, 64, 256, true>(p, ctx);
  few || size <= 2 * stays_in_l2 ? launch<ByOne, 32, 128, false, 12>(p, ctx) : launch<ByOne, 64, 256, false, 5>(p, ctx);
}

}  // namespace fl
