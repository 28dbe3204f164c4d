// What the transposes through registers share: which T x T patch of A a thread turns, and patches cut by the edge.
#pragma once

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"

namespace fl {

// An ordinary store of a vector. Assigned through a float4 pointer the compiler takes it apart into four where the
// address is a sum of several products, as it is here.
__device__ __forceinline__ void write(float* to, float4 v) { __stwb(reinterpret_cast<float4*>(to), v); }
__device__ __forceinline__ void write(float* to, float2 v) { __stwb(reinterpret_cast<float2*>(to), v); }

struct Patch {
  const float* a;      // its first element in A
  float* b;            // and in B
  int64_t rows, cols;  // how much of A there is from here on: a whole patch if both are at least T
};

template <int T>
__device__ __forceinline__ Patch thread_patch(const TransposeArgs& p, const TileGrid& grid) {
  const Tile tile = grid.tile(blockIdx.x);
  const int64_t i = (tile.row * blockDim.y + threadIdx.y) * T;
  const int64_t j = (tile.col * blockDim.x + threadIdx.x) * T;
  return {p.a.data + tile.batch * p.a.bs + i * p.a.rs + j, p.b.data + tile.batch * p.b.bs + j * p.b.rs + i, p.m - i,
          p.n - j};
}

// Element by element, for the patches across the edge.
template <int T>
__device__ __forceinline__ void transpose_edge(const Patch& patch, int64_t lda, int64_t ldb) {
#pragma unroll 1  // rare: registers matter more here
  for (int r = 0; r < T && r < patch.rows; ++r)
#pragma unroll 1
    for (int c = 0; c < T && c < patch.cols; ++c) patch.b[c * ldb + r] = __ldg(patch.a + r * lda + c);
}

}  // namespace fl
