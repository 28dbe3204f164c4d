// The epilogue of a symmetric C: what is on or below the diagonal goes to its own place and to its mirror image, the
// rest nowhere. No element is written by two threads.
//
// By boxes of 16 rows and 16 columns, each of which goes to shared memory twice, as it is and transposed, and from
// there to C by TMA: a box on the diagonal, and all of them where there is no map of C, by ordinary stores. From
// registers, every access of a warp would touch four or eight lines of memory.
#pragma once

#include <cuda_runtime.h>

#include "cuda/kernels/common/ptx_wgmma.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "plan/accurate/wgmma_tiles.h"

namespace fl {

constexpr int MIRRORED_BOX = 16;  // rows and columns

// Of one warp, which has two pairs of boxes and uses them alternately. As tensor maps have it, 16-byte parts of a row
// of a box change places with the row's number.
struct MirroredEpilogue {
  static constexpr bool USES_STAGES = false;
  static constexpr int BOX = MIRRORED_BOX, BYTES = BOX * BOX * 4;
  static_assert(4 * BYTES == 2 * BOX_BYTES);
  const AccurateEpilogue& out;
  const CUtensorMap* map;
  uint32_t boxes;
  bool wide;
  int pair = 0;

  template <int WAVES, int COLS>
  __device__ __forceinline__ void begin_tile(int, int) const {}
  __device__ __forceinline__ void finish() const { wait_for_boxes<0>(); }

  // As that of StagedEpilogue, but that lane l holds columns 8 * j + 2 * (l % 4) on, two of them.
  template <int ACC>
  __device__ __forceinline__ void store(float (&acc)[ACC], int from, int to, int row0, int col0, bool) {
#pragma unroll
    for (int box = 0; box < ACC / 8; ++box) {
      if (box < from * 2 || box >= to * 2) continue;
      float(&sums)[8] = *reinterpret_cast<float(*)[8]>(&acc[box * 8]);
      asm volatile("" : "+r"(row0), "+r"(col0));  // addresses are worked out box by box, not kept: spills of 270 bytes
      if (col0 + box * BOX <= row0) {
        wait_for_boxes<2>();
        fill_boxes(sums, row0, col0 + box * BOX);
        store_boxes(row0, col0 + box * BOX);
      }
#pragma unroll
      for (float& sum : sums) sum = 0.0f;
    }
  }

 private:
  // All but those of the latest N stores have left shared memory.
  template <int N>
  __device__ __forceinline__ void wait_for_boxes() const {
    if (threadIdx.x % 32 == 0) ptx::wait_boxes_read<N>();
    __syncwarp();
  }
  __device__ __forceinline__ uint32_t own() const { return boxes + pair * 2 * BYTES; }
  __device__ __forceinline__ uint32_t mirror() const { return own() + BYTES; }

  __device__ __forceinline__ float result(float sum, int e) const {
    return (wide ? scale_wide(sum, -e) : sum * power_of_two(-e)) * out.alpha;
  }

  // Two columns, 8 * j on, of two rows, 8 * half on. Which of two stores comes first changes with the row, and with the
  // column of the transposed box: no bank conflicts.
  __device__ __forceinline__ void fill_boxes(const float (&sums)[8], int row0, int col0) const {
    const int lane = threadIdx.x % 32, r = lane / 4, q = lane % 4;
    const bool second_first = r & 2, odd = q & 1;
    const uint32_t line = own() + r * 64 + ((q / 2 ^ r / 2 % 4 ^ (second_first ? 2 : 0)) << 4) + q % 2 * 8;
    const uint32_t column = mirror() + q * 128 + (odd ? 64 : 0) + ((r / 4 ^ q) << 4) + r % 4 * 4;
    const int2* const across = reinterpret_cast<const int2*>(out.b_exponents + col0) + q;
    const int2 back[2] = {__ldg(across), __ldg(across + 4)};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int down = __ldg(out.a_exponents + row0 + r + half * 8);
      float2 x[2];
#pragma unroll
      for (int j = 0; j < 2; ++j)
        x[j] = {result(sums[j * 4 + half * 2], down + back[j].x), result(sums[j * 4 + half * 2 + 1], down + back[j].y)};
      ptx::store2(line + half * 512, second_first ? x[1] : x[0]);
      ptx::store2((line ^ 32) + half * 512, second_first ? x[0] : x[1]);
      const uint32_t at = column ^ half * 32;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        ptx::store1(at + j * 512, odd ? x[j].y : x[j].x);
        ptx::store1((at ^ 64) + j * 512, odd ? x[j].x : x[j].y);
      }
    }
  }

  __device__ __forceinline__ void store_boxes(int row0, int col0) {
    if (out.by_boxes && col0 < row0) {
      ptx::async_proxy_fence();
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
        ptx::store_box(map, col0, row0, own());
        ptx::store_box(map, row0, col0, mirror());
      }
    } else {
      __syncwarp();
      write_boxes(row0, col0);
      wait_for_boxes<0>();  // so that those of the latest stores are those of the other pair
    }
    pair ^= 1;
  }

  // Two lines of each box at a time.
  __device__ __forceinline__ void write_boxes(int row0, int col0) const {
    const int lane = threadIdx.x % 32, at = lane % 16;
#pragma unroll 1
    for (int line = lane / 16; line < BOX; line += 2) {
      const uint32_t offset = line * 64 + ((at / 4 ^ line / 2 % 4) << 4) + at % 4 * 4;
      const int row = row0 + line, col = col0 + at;
      if (row < out.m && col <= row) out.c[row * out.ldc + col] = ptx::load1(own() + offset);
      const int across = row0 + at, down = col0 + line;
      if (across < out.m && down < across) out.c[down * out.ldc + across] = ptx::load1(mirror() + offset);
    }
  }
};

}  // namespace fl
