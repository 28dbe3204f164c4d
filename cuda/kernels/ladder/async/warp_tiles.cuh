// The tile of a block as tiles of its warps and of their threads, and its way from shared memory through the registers
// into C: what the steps of the ladder from 10 on have in common.
//
// A warp's tile is in one piece, 8 lanes down and 4 across. For each k it reads WM + WN floats of shared memory for
// WM * WN FMAs: 96 for 2048 with 8 x 8 a thread, 128 for 4096 with 8 x 16. A 16-byte read writes four registers, which
// takes as many issue slots as four FMAs would: at most TM TN / (TM TN + TM + TN) of the peak is left.
#pragma once

#include "cuda/kernels/common/tiles.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"

namespace fl {
namespace {

// Four neighbours of a row of C, of which the first `exist` exist; `by16`: such fours are aligned.
__device__ __forceinline__ void store_four(const SgemmArgs& p, float* c, const float* sums, int exist, bool by16) {
  if (by16) return epilogue(p).store4(c, sums, exist);
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < exist) epilogue(p).store(c + j, sums[j]);
}

template <int TM_, int TN_>
struct WarpTiles {
  static constexpr int TM = TM_, TN = TN_, WM = 8 * TM, WN = 4 * TN, WARPS_N = 4, THREADS = 256, BK = 16;
  static constexpr int BM = THREADS / 32 / WARPS_N * WM, BN = WARPS_N * WN;

  int row, col;  // of the thread's first output in the tile of the block: its rows and columns come in fours
  float acc[TM][TN];

  __device__ __forceinline__ explicit WarpTiles(int t) {
    const Lane lane(t % 32);
    row = t / 32 / WARPS_N * WM + lane.row * 4;
    col = t / 32 % WARPS_N * WN + lane.col * 4;
  }

  __device__ __forceinline__ void zero() {
#pragma unroll
    for (int q = 0; q < TM * TN; ++q) acc[q / TN][q % TN] = 0.0f;
  }

  // acc += BK columns of A times BK rows of B, which lie in shared memory with so many floats from k to k. Those of the
  // next k are read while this one is multiplied.
  template <int A_ROW, int B_ROW>
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b) {
    float a_frag[2][TM], b_frag[2][TN];
    auto load = [&](int l) {
#pragma unroll
      for (int i = 0; i < TM; i += 4) unpack(&a_frag[l % 2][i], ptx::load4(a + (l * A_ROW + row + i * 8) * 4));
#pragma unroll
      for (int j = 0; j < TN; j += 4) unpack(&b_frag[l % 2][j], ptx::load4(b + (l * B_ROW + col + j * 4) * 4));
    };
    load(0);
#pragma unroll
    for (int l = 0; l < BK; ++l) {
      if (l + 1 < BK) load(l + 1);
      outer_product(acc, a_frag[l % 2], b_frag[l % 2]);
    }
  }

  // Four neighbours of a row; q counts rows, four columns at a time.
  __device__ __forceinline__ float* quad(int q) { return &acc[q / (TN / 4)][q % (TN / 4) * 4]; }

  __device__ __forceinline__ void store(const SgemmArgs& p, const BlockTile& block, bool by16 = true) const {
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const int r = row + i / 4 * 32 + i % 4;
      if (r < block.rows)
#pragma unroll
        for (int j = 0; j < TN; j += 4)
          store_four(p, block.c + r * p.c.rs + col + j * 4, &acc[i][j], block.cols - col - j * 4, by16);
    }
  }
};

}  // namespace
}  // namespace fl
