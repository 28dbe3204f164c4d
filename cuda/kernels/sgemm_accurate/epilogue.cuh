// How sums of scaled terms leave the accumulators: scaled back by the exponents of their line of A and of B, and by
// alpha, and with beta times an addend.
#pragma once

#include "cuda/kernels/sgemm_accurate/terms.cuh"

namespace fl {

// What beta multiplies, any strided view: C itself, another matrix, a row or a column for all.
struct AddendView {
  const float* data;
  int64_t rs, cs;
  bool by16;  // its rows are contiguous and start at multiples of 16 bytes

  __device__ __forceinline__ const float* at(int row, int col) const { return data + row * rs + col * cs; }
  // Four neighbours of a row, of which `exist` exist.
  __device__ __forceinline__ float4 four(int row, int col, int exist) const {
    const float* const from = at(row, col);
    if (by16 && exist >= 4) return *reinterpret_cast<const float4*>(from);
    return {exist > 0 ? from[0] : 0.0f, exist > 1 ? from[cs] : 0.0f, exist > 2 ? from[2 * cs] : 0.0f,
            exist > 3 ? from[3 * cs] : 0.0f};
  }
};

// What all of them have to know.
struct AccurateEpilogue {
  const int *a_exponents, *b_exponents;
  float* c;
  int64_t ldc;
  AddendView addend;
  int m, n;
  float alpha, beta;
  // Whether operands stay in L2 as C leaves first: 51.9 us, else 53.1, at 2048, 32.4 and 33.3 at 1536, none from 3072.
  bool evict_first;
  bool by_columns = false;  // columns follow one another in C, `ldc` apart, and not rows
  bool by_boxes = false;    // of a symmetric C: there is a map of its boxes

  __device__ __forceinline__ float* column(int row, int col) const { return c + col * ldc + row; }
};

// Split-K: where the sums of each part of k go, in rows of `ld`, `part_stride` from part to part.
struct SplitKSums {
  float* sums;
  int parts;
  int64_t ld, part_stride;
};

// x * 2^e in two steps of which only the second rounds: 2^e alone may not be a float.
__device__ __forceinline__ float scale_wide(float x, int e) {
  const int half = max(e / 2, -126);
  return x * power_of_two(half) * power_of_two(max(e - half, -126));
}

// Four neighbours of a row of C of which `exist` exist.
__device__ __forceinline__ void write_vector(float* to, float4 x, bool vector, int exist) {
  if (vector && exist >= 4) {
    *reinterpret_cast<float4*>(to) = x;
    return;
  }
  if (exist > 0) to[0] = x.x;
  if (exist > 1) to[1] = x.y;
  if (exist > 2) to[2] = x.z;
  if (exist > 3) to[3] = x.w;
}
// The same where they are `apart`.
__device__ __forceinline__ void write_column(float* to, float4 x, int64_t apart, int exist) {
  if (exist > 0) to[0] = x.x;
  if (exist > 1) to[apart] = x.y;
  if (exist > 2) to[2 * apart] = x.z;
  if (exist > 3) to[3 * apart] = x.w;
}

}  // namespace fl
