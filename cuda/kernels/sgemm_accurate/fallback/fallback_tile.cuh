// The float32 fallback: FMAs in ascending k, a run of 64 to 512 of them at a time, and sums of the runs. One sum of
// 1024 has five times the error on positive numbers, and runs of 512 three times; cuBLAS cuts k too where there are few
// tiles. It runs in the kernel of the product that was rejected, or is launched behind it (float32_fallback.cu) and
// leaves at once if the terms were not rejected.
//
// It has the tile and the loop of bank_conflict_free, but reads number by number, whatever the order and alignment of
// the operands: it is in many kernels, so its code is small. The sums of finished runs wait in shared memory. Where a
// block may have less of that than they need, they wait in registers, which leaves room for one block on a
// multiprocessor.
#pragma once

#include "core/layout.h"
#include "core/stored.h"
#include "cuda/kernels/common/halves.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/tiles.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "plan/accurate/float32_fallback.h"

namespace fl {

struct FallbackTiles {
  float As[FALLBACK_BK][FALLBACK_BM + 4], Bs[FALLBACK_BK][FALLBACK_BM + 4];
};
static_assert(sizeof(FallbackTiles) == FALLBACK_STEP_BYTES);
// The sums of finished runs, 16 vectors of a thread: in shared memory behind the tiles, or in registers.
constexpr int FALLBACK_VECTORS = FALLBACK_BM * FALLBACK_BM / 4 / FALLBACK_THREADS;
struct SharedSums {
  static constexpr int BYTES = FALLBACK_SUMS_BYTES, UNROLL = 1;
  // Shared memory of 8.6, 8.9 and 12.x has room for one; two leave 128 registers, and code for 10.x takes more.
  static constexpr int RESIDENT = code_for<86, 89, 100, 120> ? 1 : 2;
  float4* of_thread;
  __device__ __forceinline__ explicit SharedSums(FallbackTiles& shared)
      : of_thread(reinterpret_cast<float4*>(&shared + 1) + threadIdx.x) {}
  __device__ __forceinline__ float4& operator[](int i) const { return of_thread[i * FALLBACK_THREADS]; }
};
struct RegisterSums {
  static constexpr int BYTES = 0, UNROLL = FALLBACK_VECTORS, RESIDENT = 1;
  float4 own[FALLBACK_VECTORS];
  __device__ __forceinline__ explicit RegisterSums(FallbackTiles&) {}
  __device__ __forceinline__ float4& operator[](int i) { return own[i]; }
};

// As long as there are runs, about: errors of the runs and of their sum are alike then.
__device__ __forceinline__ int fallback_run(int64_t k) {
  return k <= 2048 ? 64 : k <= 8192 ? 128 : k <= 32768 ? 256 : 512;
}

// The sums of a thread: four rows by four columns, and the same half a tile further down, across, and both.
template <class Sums>
__device__ __forceinline__ void store_fallback(const SgemmArgs& p, const BlockTile& block, int thread_row,
                                               int thread_col, Sums& sums) {
  const ConstMatrix old = addend_of(p);
  const int64_t at = block.c - p.c.data, row0 = at / p.c.rs, col0 = at % p.c.rs;
  const float* const addend = old.data + row0 * old.rs + col0 * old.cs;
#pragma unroll Sums::UNROLL
  for (int q = 0; q < FALLBACK_VECTORS; ++q) {
    const int row = thread_row + q / 8 * (FALLBACK_BM / 2) + q / 2 % 4, col0 = thread_col + q % 2 * (FALLBACK_BM / 2);
    if (row >= block.rows) continue;
    const float4 four = sums[q];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float sum = j == 0 ? four.x : j == 1 ? four.y : j == 2 ? four.z : four.w;
      const int col = col0 + j;
      if (col < block.cols) block.c[row * p.c.rs + col] = epilogue(p)(sum, addend + row * old.rs + col * old.cs);
    }
  }
}

// The numbers of a step of an operand that a thread moves: of one k, and of every APART-th line, a row of A or a column
// of B. Neighbouring threads take what is contiguous, lines or eight k; either way the stores of a warp hit 32 banks.
// HALVES: the operand may be in 16 bits.
template <bool HALVES>
struct FallbackLoader {
  static constexpr int COUNT = 4, APART = FALLBACK_BM / COUNT;
  const Stored& stored;
  const float* from;
  int64_t next_step, next_line;
  int k, line;
  float of[COUNT];

  __device__ __forceinline__ FallbackLoader(const Stored& stored, const float* first, int64_t k_stride,
                                            int64_t line_stride)
      : stored(stored), next_step(k_stride * FALLBACK_BK), next_line(line_stride * APART) {
    const bool along_k = k_stride == 1;
    k = along_k ? threadIdx.x % FALLBACK_BK : threadIdx.x / APART;
    line = along_k ? threadIdx.x / FALLBACK_BK : threadIdx.x % APART;
    from = first + k * k_stride + line * line_stride;
  }

  __device__ __forceinline__ void fetch(int ks, int lines, float outside) {
    if (HALVES && stored.element != Element::float32) {
      const Half* const first = place_of<Half>(stored, from);
      const bool bfloat = stored.element == Element::bfloat16;
      take(ks, lines, outside, [&](int i) { return widened(first[i * next_line].bits, bfloat); });
    } else {
      take(ks, lines, outside, [&](int i) { return from[i * next_line]; });
    }
    from += next_step;
  }
  __device__ __forceinline__ void stash(float (&tile)[FALLBACK_BK][FALLBACK_BM + 4]) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) tile[k][line + i * APART] = of[i];
  }

 private:
  template <class Number>
  __device__ __forceinline__ void take(int ks, int lines, float outside, Number&& number) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) of[i] = k < ks && line + i * APART < lines ? number(i) : outside;
  }
};

// By the first FALLBACK_THREADS of a block.
template <class Sums = SharedSums, bool HALVES = false>
__device__ __forceinline__ void fallback_tile(const SgemmArgs& p, const BlockTile& block, FallbackTiles& shared) {
  constexpr int BM = FALLBACK_BM, BN = FALLBACK_BM, BK = FALLBACK_BK, TM = 8, TN = 8;
  auto &As = shared.As, &Bs = shared.Bs;
  FallbackLoader<HALVES> a(p.stored[0], block.a, p.a.cs, p.a.rs), b(p.stored[1], block.b, p.b.rs, p.b.cs);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = (warp / 2 * 4 + lane / 16 * 2 + lane % 2) * 4, thread_col = (warp % 2 * 8 + lane / 2 % 8) * 4;
  const int run = fallback_run(p.k);
  Sums sums(shared);
  alignas(16) float acc[TM][TN] = {}, a_frag[TM], b_frag[TN];
  auto fetch = [&](int64_t left) {
    a.fetch(k_left(left, BK), block.rows, A_OUTSIDE);
    b.fetch(k_left(left, BK), block.cols, B_OUTSIDE);
  };
  fetch(p.k);
  for (int64_t left = max(p.k, int64_t{1}); left > 0; left -= BK) {  // without k once, with zeros
    a.stash(As);
    b.stash(Bs);
    ptx::named_barrier<1, FALLBACK_THREADS>();
    fetch(left - BK);
#pragma unroll
    for (int l = 0; l < BK; ++l) {
      for (int i = 0; i < TM; i += 4) copy4(&a_frag[i], &As[l][thread_row + i / 4 * (BM / 2)]);
      for (int j = 0; j < TN; j += 4) copy4(&b_frag[j], &Bs[l][thread_col + j / 4 * (BN / 2)]);
      outer_product(acc, a_frag, b_frag);
    }
    ptx::named_barrier<1, FALLBACK_THREADS>();
    const int64_t done = p.k - left + BK;
    if (left > BK && (p.k <= run || (done & (run - 1)) != 0)) continue;
#pragma unroll
    for (int q = 0; q < FALLBACK_VECTORS; ++q) {
      float* const part = &acc[q / (TN / 4)][q % (TN / 4) * 4];
      float4& sum = sums[q];
      if (done > run) {
        const float4 old = sum;
        part[0] += old.x, part[1] += old.y, part[2] += old.z, part[3] += old.w;
      }
      sum = *reinterpret_cast<const float4*>(part);
      part[0] = part[1] = part[2] = part[3] = 0.0f;
    }
  }
  store_fallback(p, block, thread_row, thread_col, sums);
}

// A tile over a part of k of split-K.
__device__ __forceinline__ void fall_back_in_part(const SgemmArgs& p, const TileGrid& grid, const SplitKSums& to,
                                                  unsigned unit, char* memory) {
  const int64_t k_blocks = ceil_div(p.k, TERM_BLOCK);
  const int64_t part = unit / grid.total, from = k_blocks * part / to.parts * TERM_BLOCK;
  SgemmArgs one = p;
  one.k = min(p.k, k_blocks * (part + 1) / to.parts * TERM_BLOCK) - from;
  one.a.data += from * p.a.cs, one.b.data += from * p.b.rs;
  one.c.data = to.sums + part * to.part_stride, one.c.rs = to.ld;
  one.alpha = 1.0f, one.beta = 0.0f;
  fallback_tile(one, block_tile<FALLBACK_BM, FALLBACK_BM>(one, grid, unit % grid.total),
                *reinterpret_cast<FallbackTiles*>(memory));
}

// The fallback as a part of another kernel: a launch of its own takes up to 2 us.
struct Fallback {
  bool wanted;  // whether this kernel is to fall back
  TileGrid grid;
  SgemmArgs args;
  Fallback(const SgemmArgs& p, bool wanted) : wanted(wanted), grid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM), args(p) {}
};

// By the first FALLBACK_THREADS of each block.
template <bool HALVES = false>
__device__ __forceinline__ void fall_back(const Fallback& plan, char* memory) {
  for (unsigned tile = blockIdx.x; tile < plan.grid.total; tile += gridDim.x)
    fallback_tile<SharedSums, HALVES>(plan.args, block_tile<FALLBACK_BM, FALLBACK_BM>(plan.args, plan.grid, tile),
                                      *reinterpret_cast<FallbackTiles*>(memory));
}

}  // namespace fl
