// The product of two operands that the split pass has cut into fp16 slices, with instructions that every GPU from
// compute capability 8.0 on has: cp.async, ldmatrix and mma.sync.
//
// The slices lie in memory as the tensor cores read them, so stages are filled by plain copies, and read without bank
// conflicts. Persistent blocks: the copies for a tile begin while the one before it is multiplied and stored.
//
// Three accumulators: the product of the high slices is promoted to a float32 sum every 64 k, and the other two
// products have one of their own, because the tensor cores truncate and what is small has to be summed first. It
// becomes the start of the high slices' next 64 k. So a fragment is read from shared memory once for all three
// products, 128 bytes per instruction; one accumulator for all in the order of the wgmma kernel would read the high
// slices twice, 192 bytes, and shared memory gives 128 a cycle. The price: 192 of 255 registers hold sums, at 64 x 32.
#pragma once

#include "cuda/kernels/common/ptx_mma.cuh"
#include "cuda/kernels/sgemm_accurate/mma_stages.cuh"

namespace fl {

template <class T>
using MmaSums = float[T::MT][T::NT][4];

template <class T>
__device__ __forceinline__ void add(MmaSums<T>& to, const MmaSums<T>& x) {
#pragma unroll
  for (int i = 0; i < T::MT; ++i)
#pragma unroll
    for (int j = 0; j < T::NT; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) to[i][j][r] += x[i][j][r];
}

// One warp's 16 k of a stage. FIRST: `small` begins anew.
template <class T, bool FIRST>
__device__ __forceinline__ void multiply_16(MmaSums<T>& large, MmaSums<T>& small, uint32_t a_at, uint32_t b_at) {
  uint32_t b[2][T::NT / 2][4];  // slices, pairs of fragments
#pragma unroll
  for (int slice = 0; slice < 2; ++slice)
#pragma unroll
    for (int pair = 0; pair < T::NT / 2; ++pair)
      ptx::load_matrices_transposed(b[slice][pair], (b_at ^ pair * 32) + slice * T::B_SLICE);
#pragma unroll
  for (int i = 0; i < T::MT; ++i) {
    uint32_t high[4], low[4];
    ptx::load_matrices(high, a_at + i * 16 * 64);
    ptx::load_matrices(low, a_at + i * 16 * 64 + T::A_SLICE);
    auto each = [&](MmaSums<T>& sums, const uint32_t(&a)[4], int slice, bool begin) __attribute__((always_inline)) {
#pragma unroll
      for (int j = 0; j < T::NT; ++j) {
        const uint32_t* const x = &b[slice][j / 2][j % 2 * 2];
        if (begin) ptx::mma(sums[i][j], a, x[0], x[1], {0.0f, 0.0f, 0.0f, 0.0f});
        else ptx::mma(sums[i][j], a, x[0], x[1], sums[i][j]);
      }
    };
    each(small, low, 0, FIRST);
    each(large, high, 0, false);
    each(small, high, 1, false);
  }
}

// Rows in eights, columns in fours (SplitShare puts neighbours into one lane).
template <class T>
__device__ __forceinline__ void store_sums(const MmaPlan& plan, const MmaSums<T>& sums, const MmaCorner& corner,
                                           const int* exponents, bool wide) {
  const Epilogue& out = plan.out;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = warp / T::WARP_COLS * 16 * T::MT + lane / 4,
            first_col = warp % T::WARP_COLS * 8 * T::NT + lane % 4 * 4;
#pragma unroll
  for (int pair = 0; pair < T::NT / 2; ++pair) {
    const int col = corner.col + first_col + pair * 16, exist = out.n - col;
    const int4 back = *reinterpret_cast<const int4*>(exponents + T::BM + first_col + pair * 16);
#pragma unroll
    for (int i = 0; i < T::MT * 2; ++i) {
      const int row = corner.row + first_row + i * 8, down = exponents[first_row + i * 8];
      auto scaled = [&](float sum, int e) __attribute__((always_inline)) {
        return (wide ? scale_wide(sum, -down - e) : sum * power_of_two(-down - e)) * out.alpha;
      };
      const float(&left)[4] = sums[i / 2][2 * pair], (&right)[4] = sums[i / 2][2 * pair + 1];
      const float x[4] = {scaled(left[i % 2 * 2], back.x), scaled(left[i % 2 * 2 + 1], back.y),
                          scaled(right[i % 2 * 2], back.z), scaled(right[i % 2 * 2 + 1], back.w)};
      if (row >= out.m) continue;
      float* const c = out.c + row * out.ldc + col;
      if (plan.by16 && exist >= 4) {
        float4 y{x[0], x[1], x[2], x[3]};
        if (out.beta != 0.0f) {
          const float4 old = *reinterpret_cast<const float4*>(c);
          y = {fmaf(out.beta, old.x, y.x), fmaf(out.beta, old.y, y.y), fmaf(out.beta, old.z, y.z),
               fmaf(out.beta, old.w, y.w)};
        }
        *reinterpret_cast<float4*>(c) = y;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (j < exist) c[j] = out.beta != 0.0f ? fmaf(out.beta, c[j], x[j]) : x[j];
      }
    }
  }
}

// 64 k of a tile for one warp. `large` begins with what `small` was 64 k before.
template <class T>
struct MmaSteps {
  MmaFiller<T>& filler;
  uint32_t shared, a_at, b_at, stage = 0;

  __device__ __forceinline__ MmaSteps(MmaFiller<T>& filler, uint32_t shared) : filler(filler), shared(shared) {
    const unsigned lane = threadIdx.x % 32, row = threadIdx.x / 32 / T::WARP_COLS,
                   col = threadIdx.x / 32 % T::WARP_COLS;
    a_at = (row * 16 * T::MT + lane % 16) * 64 + ((lane / 16 ^ lane / 2 % 4) << 4);
    b_at = 2 * T::A_SLICE + col / 2 * 4096 + lane % 16 * 128 + ((col % 2 * 4 + lane / 16 ^ lane % 8) << 4);
  }

  __device__ __forceinline__ void multiply_64(MmaSums<T>& sums, MmaSums<T>& large, MmaSums<T>& small) {
    constexpr uint32_t LAST = (T::STAGES - 1) * T::STAGE_BYTES;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ptx::wait_copies<T::STAGES - 2>();
      __syncthreads();
      const uint32_t a = shared + stage + a_at, b = shared + stage + b_at;
      if (half == 0) multiply_16<T, true>(large, small, a, b);
      else multiply_16<T, false>(large, small, a, b);
      filler.fill(stage == 0 ? LAST : stage - T::STAGE_BYTES, half);  // before the reads above it would delay them
      multiply_16<T, false>(large, small, a ^ 32, b + 16 * 128);
      stage = stage == LAST ? 0 : stage + T::STAGE_BYTES;
    }
    add<T>(sums, large);
  }
};

template <class T>
__device__ __forceinline__ void multiply_tiles(const MmaPlan& plan, MmaFiller<T>& filler, const char* memory) {
  const auto& verdict = reinterpret_cast<const VerdictShared*>(memory + T::VERDICT)->verdict;
  const int tiles = plan.tile_rows * plan.tile_cols;
  MmaSteps<T> steps(filler, ptx::shared_address(memory));
  MmaSums<T> sums, one, other;
  for (int tile = int(blockIdx.x), turn = 0; tile < tiles; tile += int(gridDim.x), turn ^= 1) {
#pragma unroll
    for (int i = 0; i < T::MT * T::NT * 4; ++i)
      sums[i / 4 / T::NT][i / 4 % T::NT][i % 4] = one[i / 4 / T::NT][i / 4 % T::NT][i % 4] = 0.0f;
    auto look_ahead = [&](int left) __attribute__((always_inline)) {
      const int next = tile + int(gridDim.x);
      if (left == T::AHEAD) filler.begin_tile(next < tiles ? next : tile, turn ^ 1);
    };
    for (int left = plan.k_blocks;; left -= 2) {
      look_ahead(left);
      steps.multiply_64(sums, one, other);
      if (left == 1) {
        add<T>(sums, other);
        break;
      }
      look_ahead(left - 1);
      steps.multiply_64(sums, other, one);
      if (left == 2) {
        add<T>(sums, one);
        break;
      }
    }
    store_sums<T>(plan, sums, corner_of<T>(plan, tile),
                  reinterpret_cast<const int*>(memory + T::EXPONENTS + turn * T::EXPONENT_BYTES),
                  verdict & VERDICT_WIDE);
  }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1) mma_product_kernel(const __grid_constant__ MmaPlan plan) {
  extern __shared__ __align__(128) char memory[];  // nothing else is shared: what lies before it may not be aligned
  VerdictShared& guard = *reinterpret_cast<VerdictShared*>(memory + T::VERDICT);
  if (threadIdx.x == 0) guard = {};
  pdl_launch_next();
  __syncthreads();
  pdl_wait();
  if (!wanted(plan.guard)) return;

  // The first copies take as long as the verdict.
  MmaFiller<T> filler(plan, ptx::shared_address(memory));
  filler.begin_tile(int(blockIdx.x), 0);
#pragma unroll
  for (int i = 0; i < T::STAGES - 1; ++i) filler.fill(i * T::STAGE_BYTES, i % 2);
  collect_words<0, T::THREADS>(plan.guard, guard);
  __syncthreads();
  const unsigned verdict = verdict_of(plan.guard, guard);
  if (threadIdx.x == 0) {
    guard.verdict = verdict;  // for the stores: no register is free to keep it
    if (blockIdx.x == 0) *plan.guard.verdict = verdict;
  }
  if (!(verdict & VERDICT_REFUSED)) multiply_tiles<T>(plan, filler, memory);
  ptx::wait_copies<0>();
}

}  // namespace fl
