// What the tiled SGEMM kernels share: the part of the problem a block works on, the way of a tile into shared memory
// whatever order the operand is stored in, and the way of four results out.
//
// The rules they all follow:
//  - A tile whose elements all exist takes a path without checks; the branch is the same for the whole block.
//  - Elements past the end of k are never read. A gets -0.0f there and B +0.0f: their product -0.0f is the one number
//    that changes no sum, not even the sign of a zero, so every output stays one chain of FMAs in ascending k.
//  - Elements past the last row or column are never read either; they only feed results that are not stored.
//  - Every thread reaches every barrier.
#pragma once

#include <type_traits>

#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/float4.cuh"
#include "cuda/kernels/common/inner_loop.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {

constexpr float A_OUTSIDE = -0.0f, B_OUTSIDE = 0.0f;

// Picks the instance of a kernel for the orders A and B are stored in, true for column-major: an order known at compile
// time leaves one stride of each operand to run time.
template <class Launch>
void by_order(const SgemmArgs& p, Launch launch) {
  constexpr std::true_type transposed;
  constexpr std::false_type straight;
  const bool ta = p.a.cs != 1, tb = p.b.cs != 1;
  if (ta && tb) return launch(transposed, transposed);
  if (ta) return launch(transposed, straight);
  if (tb) return launch(straight, transposed);
  launch(straight, straight);
}

// The BM x BN outputs of a block: its rows of A and its columns of B at k = 0, its corner of C.
struct BlockTile {
  const float* a;
  const float* b;
  float* c;
  int rows, cols;  // how many exist, at most BM and BN
  bool whole;      // all of them
};

template <int BM, int BN>
__device__ __forceinline__ BlockTile block_tile(const SgemmArgs& p, const TileGrid& grid,
                                                unsigned number = blockIdx.x) {
  const Tile tile = grid.tile(number);
  const int64_t row = tile.row * BM, col = tile.col * BN;
  const int rows = static_cast<int>(min(p.m - row, int64_t{BM})), cols = static_cast<int>(min(p.n - col, int64_t{BN}));
  return {p.a.data + tile.batch * p.a.bs + row * p.a.rs,
          p.b.data + tile.batch * p.b.bs + col * p.b.cs,
          p.c.data + tile.batch * p.c.bs + row * p.c.rs + col,
          rows,
          cols,
          rows == BM && cols == BN};
}

// Which elements of a ROWS x COLS tile thread t loads: VEC of them, neighbours in memory. A line is what is contiguous
// of the operand, a row or a column; lines become rows of the tile, or, TRANSPOSED, its columns.
//  - Straight: neighbouring threads walk along the line and then to the next.
//  - Transposed: neighbouring threads share a 32-byte sector of a line and then step across the lines. If rows of the
//    tile are 4 (mod 32) floats long, the stores of a warp into its columns hit 32 different banks: 8 x 4 threads
//    storing single floats hit banks 4 * row + col, 2 x 16 threads storing the same one of their four hit 16 * (row /
//    4) + col.
template <int ROWS, int COLS, bool TRANSPOSED, int VEC>
struct TileLoader {
  static constexpr unsigned ALONG = TRANSPOSED ? ROWS : COLS, ACROSS = TRANSPOSED ? COLS : ROWS;
  static constexpr unsigned LANES = TRANSPOSED ? 8 / VEC : ALONG / VEC;
  int along, across;
  __device__ __forceinline__ explicit TileLoader(unsigned t)
      : along((t % LANES + t / LANES / ACROSS * LANES) * VEC), across(t / LANES % ACROSS) {}
  __device__ __forceinline__ int row() const { return TRANSPOSED ? along : across; }
  __device__ __forceinline__ int col() const { return TRANSPOSED ? across : along; }
  __device__ __forceinline__ int64_t offset(int64_t ld) const { return across * ld + along; }
};

// The elements of a tile that a thread moves one by one, the same column of every STEP-th row, in the two halves of the
// way: memory to registers, registers to tile. Both operands are fetched before either is stored: the waits overlap.
template <int ROWS, int COLS, bool TRANSPOSED, int THREADS>
struct TileLoader1 : TileLoader<ROWS, COLS, TRANSPOSED, 1> {
  using TileLoader<ROWS, COLS, TRANSPOSED, 1>::TileLoader;
  static constexpr int STEP = THREADS / COLS, COUNT = ROWS / STEP;
  struct Values {
    float of[COUNT];
  };

  __device__ __forceinline__ Values fetch(const float* from, int64_t ld, bool whole, int rows, int cols,
                                          float outside) const {
    const int64_t step = STEP * (TRANSPOSED ? 1 : ld);
    Values values;
    if (whole) {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) values.of[i] = from[i * step];
    } else {
      const TileLoader1 at(ptx::thread_index());
#pragma unroll
      for (int i = 0; i < COUNT; ++i)
        values.of[i] = at.row() + i * STEP < rows && at.col() < cols ? from[i * step] : outside;
    }
    return values;
  }

  template <int LD>  // at least COLS: the rest is padding against bank conflicts
  __device__ __forceinline__ void stash(float (&tile)[ROWS][LD], const Values& values) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) tile[this->row() + i * STEP][this->col()] = values.of[i];
  }
};

// The same for the one float4 of a tile that a thread moves in the kernels with 128-bit access.
template <int ROWS, int COLS, bool TRANSPOSED>
struct TileLoader4 : TileLoader<ROWS, COLS, TRANSPOSED, 4> {
  using TileLoader<ROWS, COLS, TRANSPOSED, 4>::TileLoader;

  __device__ __forceinline__ float4 fetch(const float* from, bool whole, int rows, int cols, float outside) const {
    if (whole) return *reinterpret_cast<const float4*>(from);
    const int lines = TRANSPOSED ? cols : rows, length = TRANSPOSED ? rows : cols;
    const TileLoader4 at(ptx::thread_index());
    const int exist = at.across < lines ? length - at.along : 0;
    return {exist > 0 ? from[0] : outside, exist > 1 ? from[1] : outside, exist > 2 ? from[2] : outside,
            exist > 3 ? from[3] : outside};
  }

  template <int LD>
  __device__ __forceinline__ void stash(float (&tile)[ROWS][LD], float4 v) const {
    float* to = &tile[this->row()][this->col()];
    if constexpr (TRANSPOSED) {
      to[0 * LD] = v.x;
      to[1 * LD] = v.y;
      to[2 * LD] = v.z;
      to[3 * LD] = v.w;
    } else {
      *reinterpret_cast<float4*>(to) = v;
    }
  }
};

}  // namespace fl
