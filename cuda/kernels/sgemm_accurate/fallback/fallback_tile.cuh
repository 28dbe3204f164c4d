// The float32 fallback: FMAs in ascending k, a run of 64 to 512 of them at a time, and sums of the runs. One sum of
// 1024 has five times the error on positive numbers, and runs of 512 three times; cuBLAS cuts k too where there are few
// tiles. It runs in the kernel of the product that was rejected, or is launched behind it (float32_fallback.cu) and
// leaves at once if the terms were not rejected.
//
// It has the tile and the loop of bank_conflict_free, for any alignment: an odd operand takes the path with checks. The
// sums of finished runs wait in shared memory. Where a block may have less of that than they need, they wait in
// registers, which leaves room for one block on a multiprocessor.
#pragma once

#include "core/layout.h"
#include "core/stored.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/tiles.cuh"
#include "plan/accurate/float32_fallback.h"

namespace fl {

struct FallbackTiles {
  float As[FALLBACK_BK][FALLBACK_BM + 4], Bs[FALLBACK_BK][FALLBACK_BM + 4];
};
static_assert(sizeof(FallbackTiles) == FALLBACK_STEP_BYTES);
// The sums of finished runs, 16 vectors of a thread: in shared memory behind the tiles, or in registers.
constexpr int FALLBACK_VECTORS = FALLBACK_BM * FALLBACK_BM / 4 / FALLBACK_THREADS;
struct SharedSums {
  static constexpr int BYTES = FALLBACK_SUMS_BYTES;
  // Shared memory of 8.6, 8.9 and 12.x has room for one; two leave 128 registers, and code for 10.x takes more.
  static constexpr int RESIDENT = code_for<86, 89, 100, 120> ? 1 : 2;
  float4* of_thread;
  __device__ __forceinline__ explicit SharedSums(FallbackTiles& shared)
      : of_thread(reinterpret_cast<float4*>(&shared + 1) + threadIdx.x) {}
  __device__ __forceinline__ float4& operator[](int i) const { return of_thread[i * FALLBACK_THREADS]; }
};
struct RegisterSums {
  static constexpr int BYTES = 0, RESIDENT = 1;
  float4 own[FALLBACK_VECTORS];
  __device__ __forceinline__ explicit RegisterSums(FallbackTiles&) {}
  __device__ __forceinline__ float4& operator[](int i) { return own[i]; }
};

// As long as there are runs, about: errors of the runs and of their sum are alike then.
__device__ __forceinline__ int fallback_run(int64_t k) {
  return k <= 2048 ? 64 : k <= 8192 ? 128 : k <= 32768 ? 256 : 512;
}

// The sums of a thread: four rows by four columns, and the same half a tile further down, across, and both.
__device__ __forceinline__ void store_fallback(const SgemmArgs& p, const BlockTile& block, int thread_row,
                                               int thread_col, const float (&acc)[8][8]) {
  const ConstMatrix old = addend_of(p);
  const int64_t at = block.c - p.c.data, row0 = at / p.c.rs, col0 = at % p.c.rs;
  const float* const addend = old.data + row0 * old.rs + col0 * old.cs;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = thread_row + i / 4 * (FALLBACK_BM / 2) + i % 4;
    if (row >= block.rows) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int col = thread_col + j / 4 * (FALLBACK_BM / 2) + j % 4;
      if (col < block.cols) block.c[row * p.c.rs + col] = epilogue(p)(acc[i][j], addend + row * old.rs + col * old.cs);
    }
  }
}

// Numbers of 16 bits one by one: what comes here is rare.
__device__ __forceinline__ float stored_number(const Stored& stored, const float* seen) {
  return stored.element == Element::bfloat16 ? to_float(*place_of<Bfloat>(stored, seen))
                                             : to_float(*place_of<Half>(stored, seen));
}
template <bool HALVES, int ROWS, int COLS, bool TRANSPOSED>
__device__ __forceinline__ float4 fetch4(const TileLoader4<ROWS, COLS, TRANSPOSED>& load, const Stored& stored,
                                         const float* from, bool whole, int rows, int cols, float outside) {
  if constexpr (HALVES) {
    if (stored.element != Element::float32) {
      const int exist = load.across < (TRANSPOSED ? cols : rows) ? (TRANSPOSED ? rows : cols) - load.along : 0;
      const auto number = [&](int i) { return exist > i ? stored_number(stored, from + i) : outside; };
      return {number(0), number(1), number(2), number(3)};
    }
  }
  return load.fetch(from, whole, rows, cols, outside);
}

// By the first FALLBACK_THREADS of a block. HALVES: operands may be in 16 bits.
template <bool TA, bool TB, class Sums = SharedSums, bool HALVES = false>
__device__ __forceinline__ void fallback_tile(const SgemmArgs& p, const BlockTile& block, bool by16,
                                              FallbackTiles& shared) {
  constexpr int BM = FALLBACK_BM, BN = FALLBACK_BM, BK = FALLBACK_BK, TM = 8, TN = 8;
  auto &As = shared.As, &Bs = shared.Bs;
  const TileLoader4<BK, BM, !TA> load_a(threadIdx.x);
  const TileLoader4<BK, BN, TB> load_b(threadIdx.x);
  const int64_t lda = TA ? p.a.cs : p.a.rs, ldb = TB ? p.b.cs : p.b.rs;
  const float* a = block.a + load_a.offset(lda);
  const float* b = block.b + load_b.offset(ldb);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int thread_row = (warp / 2 * 4 + lane / 16 * 2 + lane % 2) * 4, thread_col = (warp % 2 * 8 + lane / 2 % 8) * 4;
  const int run = fallback_run(p.k);
  Sums sums(shared);
  alignas(16) float acc[TM][TN] = {}, a_frag[TM], b_frag[TN];
  float4 a_regs, b_regs;
  auto fetch = [&](int64_t left) {
    const bool whole = block.whole && by16 && left >= BK;
    a_regs = fetch4<HALVES>(load_a, p.stored[0], a, whole, k_left(left, BK), block.rows, A_OUTSIDE);
    b_regs = fetch4<HALVES>(load_b, p.stored[1], b, whole, k_left(left, BK), block.cols, B_OUTSIDE);
    a += TA ? BK * lda : BK;
    b += TB ? BK : BK * ldb;
  };
  fetch(p.k);
  for (int64_t left = p.k; left > 0; left -= BK) {
    load_a.stash(As, a_regs);
    load_b.stash(Bs, b_regs);
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
    if (p.k <= run || (left > BK && (done & (run - 1)) != 0)) continue;
#pragma unroll
    for (int q = 0; q < FALLBACK_VECTORS; ++q) {
      float* const part = &acc[q / (TN / 4)][q % (TN / 4) * 4];
      float4& sum = sums[q];
      if (done > run) {
        const float4 old = sum;
        part[0] += old.x, part[1] += old.y, part[2] += old.z, part[3] += old.w;
      }
      if (left > BK) {
        sum = *reinterpret_cast<const float4*>(part);
        part[0] = part[1] = part[2] = part[3] = 0.0f;
      }
    }
  }
  store_fallback(p, block, thread_row, thread_col, acc);
}

// The fallback as a part of another kernel: a launch of its own takes up to 2 us.
struct Fallback {
  bool wanted;  // whether this kernel is to fall back
  bool ta, tb;  // whether A and B are transposed
  bool by16;    // whether they take 16-byte accesses
  TileGrid grid;
  SgemmArgs args;
  Fallback(const SgemmArgs& p, bool wanted)
      : wanted(wanted),
        ta(p.a.cs != 1),
        tb(p.b.cs != 1),
        by16(aligned<4>(p.a.data, ld(p.a)) && aligned<4>(p.b.data, ld(p.b))),
        grid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM),
        args(p) {}
};

// By the first FALLBACK_THREADS of each block.
template <bool TA, bool TB, bool HALVES = false>
__device__ __forceinline__ void fall_back(const Fallback& plan, char* memory) {
  for (unsigned tile = blockIdx.x; tile < plan.grid.total; tile += gridDim.x)
    fallback_tile<TA, TB, SharedSums, HALVES>(plan.args,
                                              block_tile<FALLBACK_BM, FALLBACK_BM>(plan.args, plan.grid, tile),
                                              plan.by16, *reinterpret_cast<FallbackTiles*>(memory));
}
template <bool HALVES = false>
__device__ __forceinline__ void fall_back(const Fallback& plan, char* memory) {
  if (plan.ta) plan.tb ? fall_back<true, true, HALVES>(plan, memory) : fall_back<true, false, HALVES>(plan, memory);
  else plan.tb ? fall_back<false, true, HALVES>(plan, memory) : fall_back<false, false, HALVES>(plan, memory);
}

}  // namespace fl
