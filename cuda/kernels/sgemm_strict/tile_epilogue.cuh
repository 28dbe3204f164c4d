// The epilogue of the strict SGEMM kernels with tiles, from the multiplying warps' registers into C: which outputs a
// lane computes, and direct stores.
#pragma once

#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/exchange.cuh"
#include "cuda/kernels/common/inner_loop.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "plan/strict/tile_rules.h"

namespace fl {

__device__ __forceinline__ float4 add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__device__ __forceinline__ float4 operator*(float f, float4 v) { return {f * v.x, f * v.y, f * v.z, f * v.w}; }

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

// A warp's outputs: 8 lanes down, 4 across. Lane pairs that share an address sit side by side (i, i ^ 1), so that a
// 16-byte read of shared memory serves both at once: 2.4 instead of 4.1 cycles, measured in a prototype.
struct Lane {
  int row, col;
  __device__ __forceinline__ explicit Lane(int lane) : row(lane / 2 % 8), col(lane / 16 * 2 + lane % 2) {}
  static __device__ __forceinline__ Lane across(int lane) {  // 4 lanes down, 8 across
    Lane at(lane);
    const int row = at.row;
    at.row = at.col, at.col = row;
    return at;
  }
};

struct Corner {  // of a block's tile in C
  float* c;
  int rows, cols;  // how many exist from here
};

__device__ __forceinline__ Corner corner(const SgemmArgs& p, int64_t batch, int64_t row, int64_t col) {
  constexpr int64_t most = 1 << 20;
  return {p.c.data + batch * p.c.bs + row * p.c.rs + col, static_cast<int>(min(p.m - row, most)),
          static_cast<int>(min(p.n - col, most))};
}

// Stores four neighbours of a row of C, of which the first `exist` exist, where all such fours are aligned.
__device__ __forceinline__ void put4(const SgemmArgs& p, float* c, int exist, float4 sum) {
  const float four[4] = {sum.x, sum.y, sum.z, sum.w};
  epilogue(p).store4(c, four, exist);
}

// Where rows of C are not aligned: what a warp has of 8 rows by 16 columns, four neighbours of a row in each lane,
// those of row `row` + lane.row * `step` and so on. Lanes exchange them, so that each has a column of four rows, and a
// store touches two rows. With stores of a lane's own four, one by one, 3153 x 4266 x 127 took 160 instead of 119 us.
struct TurnedFour {
  int row, col;
  __device__ __forceinline__ TurnedFour(int row, int step, int col, int lane)
      : row(row + lane / 8 % 2 * 4 * step), col(col + (lane / 16 * 2 + lane % 2) * 4 + lane / 2 % 4) {}
  static __device__ __forceinline__ void turn(float* x) { transpose_fours<2>(x); }
  // use(i, c): the i-th of the four, and where it is.
  template <class Use>
  __device__ __forceinline__ void each(const Corner& at, int64_t rs, int step, Use use) const {
    const int exist = col < at.cols ? at.rows - row : 0;
    float* c = at.c + row * rs + col;
#pragma unroll
    for (int i = 0; i < 4; ++i, c += step * rs)
      if (i * step < exist) use(i, c);
  }
};
__device__ __forceinline__ void put_turned(const SgemmArgs& p, const Corner& at, int row, int step, int col, int lane,
                                           float4 sum) {
  float x[4] = {sum.x, sum.y, sum.z, sum.w};
  TurnedFour::turn(x);
  TurnedFour(row, step, col, lane).each(at, p.c.rs, step, [&](int i, float* c) { epilogue(p).store(c, x[i]); });
}

// ---------------------------------------------------------------- of pipelined.cuh
template <class T>
__device__ __forceinline__ Lane lane_of(int lane) {
  return T::LANE_ROWS == 4 ? Lane::across(lane) : Lane(lane);
}

// Where quad q of lane `at` in warp (warp_row, warp_col) of a group lies in the tile. A lane's rows and columns come in
// fours.
template <class T>
struct QuadPlace {
  int row, col;
  __device__ __forceinline__ QuadPlace(int warp, Lane at, int q) {
    const int i = q / (T::TN / 4), j = q % (T::TN / 4);
    row = warp / T::WARPS_N * T::LANE_ROWS * T::TM + at.row * 4 + i / 4 * T::LANE_ROWS * 4 + i % 4;
    col = warp % T::WARPS_N * T::LANE_COLS * T::TN + at.col * 4 + j * T::LANE_COLS * 4;
  }
};

// Stores a warp's sums from registers. The lane's place is worked out here and now, not kept through the main loop. As
// in sum_and_store, the products with one free the sums from neighbouring registers.
template <class T, class Math>
__device__ __forceinline__ void store(const SgemmArgs& p, float one, const Math& math, const Corner& at) {
  const int t = static_cast<int>(ptx::thread_index());
  if constexpr (T::C16) {
    const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
    float* row = at.c + place.row * p.c.rs + place.col;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
      const bool row_exists = place.row + i / 4 * T::LANE_ROWS * 4 + i % 4 < at.rows;
      const int exist = T::TMA ? T::BN : row_exists ? at.cols - place.col : 0;
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        put4(p, row + T::LANE_COLS * j, T::TMA ? 4 : exist - T::LANE_COLS * j, math.quad((i * T::TN + j) / 4));
      row += (i % 4 == 3 ? T::LANE_ROWS * 4 - 3 : 1) * p.c.rs;
    }
  } else {
#pragma unroll
    for (int q = 0; q < T::THREAD_QUADS; ++q) {
      const QuadPlace<T> place(t / 32, Lane(0), q);
      put_turned(p, at, place.row, 4, place.col, t % 32, one * math.quad(q));
    }
  }
}

// Of the tiles of a triangle: those of a square on the diagonal. The others are mirrored to where no tile is computed.
template <class T>
__device__ __forceinline__ bool on_diagonal(const Tile& tile) {
  return tile.row * T::BM / T::BN == tile.col;
}

// Stores a warp's sums mirrored: what lies there of C has `at` for its corner. A lane's fours of rows are fours
// of a row then, and eight lanes have whole lines.
template <class T, class Math>
__device__ __forceinline__ void store_mirrored(const SgemmArgs& p, const Math& math, const Corner& at) {
  const int t = static_cast<int>(ptx::thread_index());
  const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
#pragma unroll
  for (int j = 0; j < T::TN; ++j) {
    const int row = place.col + j / 4 * T::LANE_COLS * 4 + j % 4;
    float* const c = at.c + row * p.c.rs + place.row;
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) {
      const int exist = row < at.rows ? at.cols - place.row - i * T::LANE_ROWS : 0;
      const float sums[4] = {math.acc[i][j], math.acc[i + 1][j], math.acc[i + 2][j], math.acc[i + 3][j]};
      float* const four = c + i * T::LANE_ROWS;
      if constexpr (T::C16) {
        epilogue(p).store4(four, sums, exist);
      } else {
#pragma unroll
        for (int r = 0; r < 4; ++r)
          if (r < exist) epilogue(p).store(four + r, sums[r]);
      }
    }
  }
}

}  // namespace fl
