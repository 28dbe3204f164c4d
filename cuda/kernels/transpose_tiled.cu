// Tiles through shared memory with 16-byte accesses in all four directions: a thread turns 4 x 4 patches in registers
// between reading A and writing shared memory.
//
// Shared memory holds float4s: four rows of one column of A, the number (column * BM / 4 + row group) with its low bits
// exchanged by those of the column group. No padding, no bank conflicts: eight threads that write or read together
// touch eight different groups of four banks. 32-byte sectors: reads and writes 100 %.
// Bound: memory, 3 % under a copy from 4096 x 4096 on.
//
// Up to 8 MB small tiles: many small blocks hide each other's barrier. Above, 64 x 64, numbered down the rows of A, so
// that neighbouring blocks write neighbouring pieces of the same rows of B (numbered along: up to 3 % slower in a
// prototype), and stores that do not stay in L2 (ordinary ones: 2.5 %). Thin matrices take tiles of their own width.
// Lost: patches turned without shared memory (14 %), 32 x 32 tiles for large matrices (8 %); in a prototype a diagonal
// order (3 %).
#include "overlap.cuh"

namespace fl {
namespace {

constexpr int64_t stays_in_l2 = 2 << 20;  // floats

__device__ __forceinline__ float4 read4(const float* from, int exist) {
  if (exist >= 4) return ptx::load4_once(from);
  float4 v{};
  if (exist > 0) v.x = __ldg(from);
  if (exist > 1) v.y = __ldg(from + 1);
  if (exist > 2) v.z = __ldg(from + 2);
  return v;
}

template <bool STREAM>
__device__ __forceinline__ void write4(float* to, float4 v, int exist) {
  if (exist >= 4) {
    if constexpr (STREAM) __stcs(reinterpret_cast<float4*>(to), v);
    else __stwb(reinterpret_cast<float4*>(to), v);
    return;
  }
  if (exist > 0) to[0] = v.x;
  if (exist > 1) to[1] = v.y;
  if (exist > 2) to[2] = v.z;
}

template <int BM, int BN, int THREADS>
struct Staging {
  static constexpr int ROW_GROUPS = BM / 4, COL_GROUPS = BN / 4;
  static constexpr int PATCHES = ROW_GROUPS * COL_GROUPS / THREADS;  // per thread
  // Eight threads write together: COL_GROUPS neighbouring column groups of one or several row groups.
  static constexpr int COLS = COL_GROUPS < 8 ? COL_GROUPS : 8, SPREAD = 8 / COLS;
  static_assert(PATCHES * THREADS == ROW_GROUPS * COL_GROUPS && ROW_GROUPS % 4 == 0, "whole tiles");
  static __device__ __forceinline__ int slot(int column, int row_group) {
    return (column * ROW_GROUPS + row_group) ^ (column / 4 % COLS * SPREAD);
  }
};

// FULL: the tile does not lie across an edge, and nothing is asked.
template <int BM, int BN, int THREADS, bool STREAM, bool FULL>
__device__ __forceinline__ void turn(float4 (&tile)[BM * BN / 4], const float* a, int64_t lda, float* b, int64_t ldb,
                                     int rows, int cols) {
  using S = Staging<BM, BN, THREADS>;
  const int t = threadIdx.x;
  float4 patch[S::PATCHES][4];
#pragma unroll
  for (int k = 0; k < S::PATCHES; ++k) {
    const int id = k * THREADS + t, col = id % S::COL_GROUPS * 4, row = id / S::COL_GROUPS * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      patch[k][i] = read4(a + (row + i) * lda + col, FULL ? 4 : (row + i < rows ? cols - col : 0));
  }
#pragma unroll
  for (int k = 0; k < S::PATCHES; ++k) {
    const int id = k * THREADS + t, col = id % S::COL_GROUPS * 4, group = id / S::COL_GROUPS;
    const float4(&from)[4] = patch[k];
    tile[S::slot(col, group)] = make_float4(from[0].x, from[1].x, from[2].x, from[3].x);
    tile[S::slot(col + 1, group)] = make_float4(from[0].y, from[1].y, from[2].y, from[3].y);
    tile[S::slot(col + 2, group)] = make_float4(from[0].z, from[1].z, from[2].z, from[3].z);
    tile[S::slot(col + 3, group)] = make_float4(from[0].w, from[1].w, from[2].w, from[3].w);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4 * S::PATCHES; ++k) {
    const int id = k * THREADS + t, col = id / S::ROW_GROUPS, group = id % S::ROW_GROUPS;
    write4<STREAM>(b + col * ldb + group * 4, tile[S::slot(col, group)],
                   FULL ? 4 : (col < cols ? rows - group * 4 : 0));
  }
}

// `grid` numbers tiles down the rows of A: its rows are columns of A.
template <int BM, int BN, int THREADS, bool STREAM>
__global__ void __launch_bounds__(THREADS) transpose_tiled_kernel(TransposeArgs p, TileGrid grid) {
  __shared__ float4 tile[BM * BN / 4];
  wait_for_previous();
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
  static PerDevice known;
  const TileGrid grid(p.n, p.m, p.batch, BN, BM);
  launch_overlapping(transpose_tiled_kernel<BM, BN, THREADS, STREAM>, {grid.blocks(), THREADS}, ctx, known, p, grid);
}

}  // namespace

void transpose_tiled(const TransposeArgs& p, const Context& ctx) {
  const bool small = p.m * p.n * p.batch <= stays_in_l2;
  if (p.n <= 16) return small ? launch<64, 16, 64, false>(p, ctx) : launch<128, 16, 128, true>(p, ctx);
  if (p.m <= 16) return small ? launch<16, 64, 64, false>(p, ctx) : launch<16, 128, 128, true>(p, ctx);
  if (p.n <= 32 && !small) return launch<128, 32, 256, true>(p, ctx);
  if (p.m <= 32 && !small) return launch<32, 128, 256, true>(p, ctx);
  small ? launch<32, 32, 64, false>(p, ctx) : launch<64, 64, 256, true>(p, ctx);
}

}  // namespace fl
