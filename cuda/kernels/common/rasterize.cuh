// How the blocks of a launch are numbered: from the number of a block to the tile of the result that it computes
// (rasterization).
#pragma once

#include <cuda_runtime.h>

#include "core/problem.h"

namespace fl {

struct Tile {
  int64_t batch, row, col;  // row and col count tiles, not elements
};

// All tiles of all batches as one range of block numbers, row by row. A launch uses only grid.x, whose limit is
// 2^31 - 1: grid.y and grid.z end at 65535, which a tall matrix or a large batch passes. So 32 bits are enough, and
// divide fast.
struct TileGrid {
  unsigned cols, per_batch, total;

  TileGrid() = default;
  TileGrid(int64_t m, int64_t n, int64_t batch, int BM, int BN)
      : cols(static_cast<unsigned>(ceil_div(n, BN))),
        per_batch(static_cast<unsigned>(ceil_div(m, BM)) * cols),
        total(per_batch * static_cast<unsigned>(batch)) {}

  unsigned blocks() const { return total; }

  __device__ Tile tile(unsigned block) const {
    const unsigned in_batch = block % per_batch;
    return {block / per_batch, in_batch / cols, in_batch % cols};
  }
};

template <class Int>
struct TileCorner {
  Int row, col;  // count tiles
};

// Of tile_rows x tile_cols tiles the one with this number, in bands of `band` rows, down each band's columns and then
// across: the blocks that run at a time read few rows of A and few columns of B, which stay in L2.
template <class Int>
__device__ __forceinline__ TileCorner<Int> banded_tile(Int tile, Int tile_rows, Int tile_cols, Int band) {
  const Int per_band = band * tile_cols, first = tile / per_band * band;
  const Int rows = min(band, tile_rows - first), in_band = tile % per_band;
  return {first + in_band % rows, in_band / rows};
}

// Of rows with 1, 2, 3, ... places the one that place n lies in.
__device__ __forceinline__ unsigned triangle_row(unsigned n) {
  const float x = 8.0f * static_cast<float>(n) + 1.0f;
  auto row = static_cast<unsigned>((x * rsqrtf(x) - 1.0f) * 0.5f);  // or one beside it
  while (row * (row + 1) / 2 > n) --row;
  while ((row + 1) * (row + 2) / 2 <= n) ++row;
  return row;
}

// Of the tiles on and below the diagonal of tile_rows x tile_rows the one with this number: as banded_tile, and at the
// end of a band its part of the diagonal, row by row.
__device__ __forceinline__ TileCorner<int> lower_tile(int tile, int tile_rows, int band) {
  const int first = static_cast<int>(triangle_row(tile)) / band * band, rows = min(band, tile_rows - first);
  const int in_band = tile - first * (first + 1) / 2, beside = in_band - first * rows;
  if (beside < 0) return {first + in_band % rows, in_band / rows};
  const auto row = static_cast<int>(triangle_row(beside));
  return {first + row, first + beside - row * (row + 1) / 2};
}

// The same row by row, where `high` tiles one below the other are a square. How many there are is lower_tiles().
__device__ __forceinline__ TileCorner<unsigned> lower_tile_by_rows(unsigned tile, unsigned high) {
  const unsigned square = triangle_row(tile / high), in_row = tile - high * (square * (square + 1) / 2);
  return {high * square + in_row / (square + 1), in_row % (square + 1)};
}

}  // namespace fl
