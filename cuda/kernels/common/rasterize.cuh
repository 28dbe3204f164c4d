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

}  // namespace fl
