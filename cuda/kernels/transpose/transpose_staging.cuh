// The way of a tile through shared memory with 16-byte accesses in all four directions: a thread turns 4 x 4 patches in
// registers between reading A and writing shared memory.
//
// Shared memory holds float4s: four rows of one column of A, the number (column * BM / 4 + row group) with its low bits
// exchanged by those of the column group. No padding, no bank conflicts: eight threads that write or read together
// touch eight different groups of four banks. 32-byte sectors: reads and writes 100 %.
#pragma once

#include "cuda/kernels/common/ptx.cuh"

namespace fl {

constexpr int64_t stays_in_l2 = 2 << 20;  // floats

// ONCE: nothing writes to A while the kernel runs.
template <bool ONCE>
__device__ __forceinline__ float4 read4(const float* from, int exist) {
  if (exist >= 4) {
    if constexpr (ONCE) return ptx::load4_once(from);
    else return __ldcg(reinterpret_cast<const float4*>(from));
  }
  float4 v{};
  if (exist > 0) v.x = ONCE ? __ldg(from) : __ldcg(from);
  if (exist > 1) v.y = ONCE ? __ldg(from + 1) : __ldcg(from + 1);
  if (exist > 2) v.z = ONCE ? __ldg(from + 2) : __ldcg(from + 2);
  return v;
}

template <bool STREAM>
__device__ __forceinline__ void write4(float* to, float4 v, int exist) {
  if (exist >= 4) {
    if constexpr (STREAM) __stcs(reinterpret_cast<float4*>(to), v);
    else __stwb(reinterpret_cast<float4*>(to), v);
    return;
  }
  if (exist > 0) to[0] = v.x;
  if (exist > 1) to[1] = v.y;
  if (exist > 2) to[2] = v.z;
}

template <int BM, int BN, int THREADS>
struct Staging {
  static constexpr int ROW_GROUPS = BM / 4, COL_GROUPS = BN / 4;
  static constexpr int PATCHES = ROW_GROUPS * COL_GROUPS / THREADS;  // per thread
  // Eight threads write together: COL_GROUPS neighbouring column groups of one or several row groups.
  static constexpr int COLS = COL_GROUPS < 8 ? COL_GROUPS : 8, SPREAD = 8 / COLS;
  static_assert(PATCHES * THREADS == ROW_GROUPS * COL_GROUPS, "every thread has as many patches");
  static_assert(ROW_GROUPS % 4 == 0, "the exchanged bits of a slot stay within a column");
  using Tile = float4[BM * BN / 4];

  static __device__ __forceinline__ int slot(int column, int row_group) {
    return (column * ROW_GROUPS + row_group) ^ (column / 4 % COLS * SPREAD);
  }

  // A thread's part of a tile. FULL: the tile does not lie across an edge, and nothing is asked.
  struct Patches {
    float4 of[PATCHES][4];

    template <bool FULL, bool ONCE = true>
    __device__ __forceinline__ void fetch(const float* a, int64_t lda, int rows, int cols) {
#pragma unroll
      for (int k = 0; k < PATCHES; ++k) {
        const int id = k * THREADS + threadIdx.x, col = id % COL_GROUPS * 4, row = id / COL_GROUPS * 4;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          of[k][i] = read4<ONCE>(a + (row + i) * lda + col, FULL ? 4 : (row + i < rows ? cols - col : 0));
      }
    }
    __device__ __forceinline__ void stash(Tile& tile) const {
#pragma unroll
      for (int k = 0; k < PATCHES; ++k) {
        const int id = k * THREADS + threadIdx.x, col = id % COL_GROUPS * 4, group = id / COL_GROUPS;
        const float4(&from)[4] = of[k];
        tile[slot(col, group)] = make_float4(from[0].x, from[1].x, from[2].x, from[3].x);
        tile[slot(col + 1, group)] = make_float4(from[0].y, from[1].y, from[2].y, from[3].y);
        tile[slot(col + 2, group)] = make_float4(from[0].z, from[1].z, from[2].z, from[3].z);
        tile[slot(col + 3, group)] = make_float4(from[0].w, from[1].w, from[2].w, from[3].w);
      }
    }
  };

  template <bool STREAM, bool FULL>
  static __device__ __forceinline__ void write(const Tile& tile, float* b, int64_t ldb, int rows, int cols) {
#pragma unroll
    for (int k = 0; k < 4 * PATCHES; ++k) {
      const int id = k * THREADS + threadIdx.x, col = id / ROW_GROUPS, group = id % ROW_GROUPS;
      write4<STREAM>(b + col * ldb + group * 4, tile[slot(col, group)], FULL ? 4 : (col < cols ? rows - group * 4 : 0));
    }
  }
};

}  // namespace fl
