// The epilogue of a symmetric C: what is on or below the diagonal goes to its own place and to its mirror image, the
// rest nowhere. By one warp, from registers: four lanes hold 32 bytes of a row of C, and eight lanes as many of a
// column, so that whole sectors are written both ways. No element is written by two threads.
#pragma once

#include <cuda_runtime.h>

#include "cuda/kernels/sgemm_accurate/epilogue.cuh"

namespace fl {

struct MirroredEpilogue {
  const AccurateEpilogue& out;
  bool wide, by8;  // by8: rows of C start at multiples of 8 bytes

  __device__ __forceinline__ MirroredEpilogue(const AccurateEpilogue& out, bool wide)
      : out(out), wide(wide), by8((reinterpret_cast<uintptr_t>(out.c) / 4 | uint64_t(out.ldc)) % 2 == 0) {}

  template <int WAVES, int COLS>
  __device__ __forceinline__ void begin_tile(int, int) const {}
  __device__ __forceinline__ void finish() const {}

  // As that of StagedEpilogue, but that lane l holds columns 8 * j + 2 * (l % 4) on, two of them. Addresses are worked
  // out one after the other: with all at once, 564 bytes of tall tiles are spilled.
  template <int ACC>
  __device__ __forceinline__ void store(float (&acc)[ACC], int from, int to, int row0, int col0, bool) const {
    const int lane = threadIdx.x % 32, row = row0 + lane / 4;
    const int down[2] = {__ldg(out.a_exponents + row), __ldg(out.a_exponents + row + 8)};
    int col = col0 + from * 32 + lane % 4 * 2;
    float* own = out.c + row * out.ldc + col;
    float* mirror = out.c + col * out.ldc + row;
#pragma unroll
    for (int j = 0; j < ACC / 4; ++j) {  // of 8 columns, four to a band
      if (j < from * 4 || j >= to * 4) continue;
      float(&x)[2] = *reinterpret_cast<float(*)[2]>(&acc[j * 4]);
      float(&y)[2] = *reinterpret_cast<float(*)[2]>(&acc[j * 4 + 2]);
      if (col0 + j * 8 < row0 + 16) {
        const int2 across = __ldg(reinterpret_cast<const int2*>(out.b_exponents + col));
        store_pair({result(x[0], down[0] + across.x), result(x[1], down[0] + across.y)}, row, col, own, mirror);
        store_pair({result(y[0], down[1] + across.x), result(y[1], down[1] + across.y)}, row + 8, col,
                   own + 8 * out.ldc, mirror + 8);
      }
      x[0] = x[1] = y[0] = y[1] = 0.0f;
      col += 8, own += 8, mirror += 8 * out.ldc;
      asm volatile("" : "+r"(col), "+l"(own), "+l"(mirror));
    }
    __syncwarp();
  }

 private:
  __device__ __forceinline__ float result(float sum, int e) const {
    return (wide ? scale_wide(sum, -e) : sum * power_of_two(-e)) * out.alpha;
  }
  // Columns col and col + 1.
  __device__ __forceinline__ void store_pair(float2 x, int row, int col, float* own, float* mirror) const {
    if (row >= out.m || col > row) return;
    *mirror = x.x;
    if (col < row) mirror[out.ldc] = x.y;
    if (by8 && col < row) {
      *reinterpret_cast<float2*>(own) = x;
    } else {
      own[0] = x.x;
      if (col < row) own[1] = x.y;
    }
  }
};

}  // namespace fl
