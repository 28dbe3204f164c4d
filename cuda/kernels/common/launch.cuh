// What every GPU kernel of this folder shares: how a launch is numbered and how an element of the result is stored.
#pragma once

#include <cuda_runtime.h>

#include "core/context.h"
#include "core/problem.h"

namespace fl {

inline cudaStream_t stream(const Context& ctx) { return static_cast<cudaStream_t>(ctx.stream); }

struct Tile {
  int64_t batch, row, col;  // row and col count tiles, not elements
};

// All tiles of all batches as one range of block numbers. A launch uses only grid.x, whose limit is 2^31 - 1: grid.y
// and grid.z end at 65535, which a tall matrix or a large batch passes. So 32 bits are enough, and divide fast.
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

// alpha * acc + beta * old, reading `old` only if beta asks for it.
__device__ __forceinline__ float blend(float alpha, float acc, float beta, const float* old) {
  const float scaled = alpha * acc;
  return beta == 0.0f ? scaled : fmaf(beta, *old, scaled);
}

__device__ __forceinline__ void store(const SgemmArgs& p, int64_t batch, int64_t i, int64_t j, float acc) {
  float* c = p.c.data + batch * p.c.bs + i * p.c.rs + j * p.c.cs;
  *c = blend(p.alpha, acc, p.beta, c);
}

}  // namespace fl
