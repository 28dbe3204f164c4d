// How sums leave the accumulators of a product from scaled slices: scaled back, put into a box of 16 rows by 32 columns in
// shared memory, and from there to C.
#pragma once

#include "fp16x2_verdict.cuh"

namespace fl {

constexpr int BOX_BYTES =
    16 * 32 * 4;  // swizzled as tensor maps do: 16-byte parts of a row change places with the row's number

struct Epilogue {
  const int *a_exponents, *b_exponents;
  float* c;
  int64_t ldc;
  int m, n;
  float alpha, beta;
};

// x * 2^e in two steps of which only the second rounds: 2^e alone may not be a float.
__device__ __forceinline__ float scale_wide(float x, int e) {
  const int half = max(e / 2, -126);
  return x * power_of_two(half) * power_of_two(max(e - half, -126));
}

// One warp's way out. BOXES: the copy engine stores the boxes (no beta, C aligned), two of them in turn.
template <bool BOXES>
struct BoxWriter {
  const Epilogue& out;
  const CUtensorMap* map;
  uint32_t box;
  bool wide;
  bool ring = true;  // two boxes in turn, else one after the other
  int turn = 0;

  __device__ __forceinline__ void use_fresh_boxes(uint32_t first) { box = first, ring = false, turn = 0; }

  // Rows row0 to row0 + 15, columns from col0 on, 32 at a time; zeroes what it has stored. Lane l holds eight
  // neighbouring columns, 8 * (l % 4) on, of rows l / 4 and l / 4 + 8: see Share32.
  template <int ACC>
  __device__ __forceinline__ void store(float (&acc)[ACC], int from, int to, int row0, int col0) {
    const int lane = threadIdx.x % 32, r = lane / 4, q = lane % 4;
    const int down[2] = {__ldg(out.a_exponents + row0 + r), __ldg(out.a_exponents + row0 + r + 8)};
    const int4* across = reinterpret_cast<const int4*>(out.b_exponents + col0 + q * 8);
    int4 low = __ldg(across + from * 8), high = __ldg(across + from * 8 + 1);
#pragma unroll
    for (int band = 0; band < ACC / 16; ++band) {
      if (band < from || band >= to) continue;
      const int e[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
      if (band + 1 < to)
        low = __ldg(across + band * 8 + 8), high = __ldg(across + band * 8 + 9);  // an L2 latency ahead
      const uint32_t at = box + turn * BOX_BYTES;
      if constexpr (BOXES) {
        if (ring && lane == 0) ptx::wait_boxes_read<1>();
      }
      __syncwarp();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          float& sum = acc[(4 * band + i / 2) * 4 + half * 2 + i % 2];
          const int back = -down[half] - e[i];
          x[i] = wide ? scale_wide(sum, back) : sum * power_of_two(back);
          if (BOXES) x[i] *= out.alpha;
          sum = 0.0f;
        }
        const uint32_t row = at + (r + half * 8) * 128;
        ptx::store4(row + ((2 * q ^ r) << 4), {x[0], x[1], x[2], x[3]});
        ptx::store4(row + ((2 * q + 1 ^ r) << 4), {x[4], x[5], x[6], x[7]});
      }
      if constexpr (BOXES) {
        ptx::async_proxy_fence();
        __syncwarp();
        if (lane == 0) ptx::store_box(map, col0 + band * 32, row0, at);
      } else {
        __syncwarp();
        write_rows(at, row0, col0 + band * 32 + lane);
      }
      turn = ring ? turn ^ 1 : turn + 1;
    }
  }

  // A column of the box per lane.
  __device__ __forceinline__ void write_rows(uint32_t at, int row0, int col) const {
    const int lane = threadIdx.x % 32;
    if (col >= out.n) return;
#pragma unroll 4
    for (int r = 0; r < 16; ++r) {
      if (row0 + r >= out.m) return;
      float* c = out.c + (row0 + r) * out.ldc + col;
      *c = blend(out.alpha, ptx::load1(at + r * 128 + ((lane / 4 ^ r % 8) << 4) + lane % 4 * 4), out.beta, c);
    }
  }

  __device__ __forceinline__ void finish() const {
    if (BOXES && threadIdx.x % 32 == 0) ptx::wait_boxes_read<0>();
  }
};

}  // namespace fl
