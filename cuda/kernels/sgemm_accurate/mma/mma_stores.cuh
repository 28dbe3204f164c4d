// How the sums of a product by mma.sync leave the registers: scaled back to C, through shared memory where groups of
// warps share k, or to the workspace of split-K.
#pragma once

#include "cuda/kernels/common/exchange.cuh"
#include "cuda/kernels/sgemm_accurate/mma/mma_fragments.cuh"

namespace fl {

// Stores what a warp has of eight rows and 16 columns of C, from sums of scaled numbers: four neighbours of row l / 4
// in lane l, from (row, col) on. Lanes exchange them first, so that each has a column of four rows and a store touches
// two rows. It touched all eight where neighbours are not aligned: 4095 x 4095 x 300 took 179 instead of 117 us. With
// copies through registers that makes the main loop longer, and all products by an eighth.
template <class T>
__device__ __forceinline__ void store_any(const MmaPlan& plan, int row, int col, const float4& sum, int down,
                                          const int4& back) {
  const AccurateEpilogue& out = plan.out;
  float x[4] = {scale_wide(sum.x, -down - back.x) * out.alpha, scale_wide(sum.y, -down - back.y) * out.alpha,
                scale_wide(sum.z, -down - back.z) * out.alpha, scale_wide(sum.w, -down - back.w) * out.alpha};
  if constexpr (T::ASYNC) {
    transpose_fours<4>(x);
    const int lane = threadIdx.x % 32;
    row += lane / 16 * 4 - lane / 4, col += lane / 4 % 4;
    const int rows = col < out.n ? out.m - row : 0;
    if (out.beta != 0.0f) {
      const float* from = out.addend.at(row, col);
#pragma unroll
      for (int i = 0; i < 4; ++i, from += out.addend.rs)
        if (i < rows) x[i] = fmaf(out.beta, *from, x[i]);
    }
    write_column(out.c + row * out.ldc + col, {x[0], x[1], x[2], x[3]}, out.ldc, rows);
  } else {
    const int exist = row < out.m ? out.n - col : 0;
    float4 result{x[0], x[1], x[2], x[3]};
    if (out.beta != 0.0f) {
      const float4 old = out.addend.four(row, col, exist);
      result = {fmaf(out.beta, old.x, x[0]), fmaf(out.beta, old.y, x[1]), fmaf(out.beta, old.z, x[2]),
                fmaf(out.beta, old.w, x[3])};
    }
    write_vector(out.c + row * out.ldc + col, result, plan.by16, exist);
  }
}

// Where the sums of a thread lie in its tile: vector v of four neighbours of a row. Rows in eights, columns in fours
// (SplitThreadMap puts neighbours into one lane).
template <class T>
struct MmaVectors {
  static constexpr int COUNT = T::MT * T::NT;
  int row0, col0;
  __device__ __forceinline__ MmaVectors() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % T::GROUP_THREADS / 32;
    row0 = warp / T::WARPS_N * 16 * T::MT + lane / 4, col0 = warp % T::WARPS_N * 8 * T::NT + lane % 4 * 4;
  }
  __device__ __forceinline__ int row(int v) const { return row0 + v % (2 * T::MT) * 8; }
  __device__ __forceinline__ int col(int v) const { return col0 + v / (2 * T::MT) * 16; }
  static __device__ __forceinline__ float4 of(const MmaSums<T>& sums, int v) {
    const int pair = v / (2 * T::MT), i = v % (2 * T::MT);
    const float(&left)[4] = sums[i / 2][2 * pair], (&right)[4] = sums[i / 2][2 * pair + 1];
    return {left[i % 2 * 2], left[i % 2 * 2 + 1], right[i % 2 * 2], right[i % 2 * 2 + 1]};
  }
};

// Stores `COUNT` vectors, of which get(i) is the i-th and at(i) its number. Nearly all tiles run the few instructions
// of the first branch alone.
template <class T, int COUNT, class At, class Get>
__device__ __forceinline__ void store_vectors(const MmaPlan& plan, const MmaTileOrigin& corner, const int* exponents,
                                              bool wide, At&& at, Get&& get) {
  const AccurateEpilogue& out = plan.out;
  const MmaVectors<T> vectors;
  const bool full = corner.row + T::BM <= out.m && corner.col + T::BN <= out.n;
  auto across = [&](int v) { return *reinterpret_cast<const int4*>(exponents + T::BM + vectors.col(v)); };
  if (full && plan.by16 && !wide && out.beta == 0.0f) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int v = at(i), row = vectors.row(v);
      const int down = exponents[row];
      const int4 back = across(v);
      const float4 sum = get(i);
      auto result = [&](float x, int e)
                        __attribute__((always_inline)) { return x * power_of_two(-down - e) * out.alpha; };
      *reinterpret_cast<float4*>(out.c + (corner.row + row) * out.ldc + corner.col + vectors.col(v)) = {
          result(sum.x, back.x), result(sum.y, back.y), result(sum.z, back.z), result(sum.w, back.w)};
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int v = at(i), row = vectors.row(v);
      store_any<T>(plan, corner.row + row, corner.col + vectors.col(v), get(i), exponents[row], across(v));
    }
  }
}

// The sums of all groups through shared memory, added up in the order of the groups by whichever thread stores them.
template <class T>
__device__ __forceinline__ void store_groups(const MmaPlan& plan, const MmaSums<T>& sums, const MmaTileOrigin& corner,
                                             char* memory, bool wide) {
  constexpr int VECTORS = MmaVectors<T>::COUNT, SHARE = VECTORS / T::K_GROUPS;
  float4* const parts = reinterpret_cast<float4*>(memory) + threadIdx.x % T::GROUP_THREADS;
  const int group = threadIdx.x / T::GROUP_THREADS;
  wait_fills<T, 0>();
  __syncthreads();
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) parts[(group * VECTORS + v) * T::GROUP_THREADS] = MmaVectors<T>::of(sums, v);
  __syncthreads();
  store_vectors<T, SHARE>(
      plan, corner, reinterpret_cast<const int*>(memory + T::EXPONENTS), wide, [&](int i) { return group * SHARE + i; },
      [&](int i) {
        float4 sum = parts[(group * SHARE + i) * T::GROUP_THREADS];
#pragma unroll
        for (int g = 1; g < T::K_GROUPS; ++g) {
          const float4 part = parts[(g * VECTORS + group * SHARE + i) * T::GROUP_THREADS];
          sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        return sum;
      });
}

// The sums of a part of k, for the reduction behind (split_k_reduction.cu). There is room for whole tiles.
template <class T>
__device__ __forceinline__ void store_part(const MmaPlan& plan, const MmaSums<T>& sums, const MmaTileOrigin& corner,
                                           int part) {
  const MmaVectors<T> vectors;
  float* const to = plan.to.sums + part * plan.to.part_stride + corner.row * plan.to.ld + corner.col;
#pragma unroll
  for (int v = 0; v < MmaVectors<T>::COUNT; ++v)
    *reinterpret_cast<float4*>(to + vectors.row(v) * plan.to.ld + vectors.col(v)) = MmaVectors<T>::of(sums, v);
}

}  // namespace fl
