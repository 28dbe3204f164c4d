// A tile that one warp multiplies, with a pipeline of its own (sgemm_strict_warp_tiles.cu).
#pragma once

#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_strict/register_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict/warp_tiles.h"

namespace fl {

// C16: rows of C are aligned for 16-byte stores.
template <WarpTile TILE, bool ALIGNED>
struct TileOfAWarp {
  static_assert(TILE.sound());
  static constexpr bool C16 = ALIGNED;
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM(), TN = TILE.TN();
  static constexpr int STAGES = TILE.stages, WARPS = TILE.warps, THREADS = TILE.threads();
  // Code for less than 8.0 knows no asynchronous copies, and its registers hold what is under way.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static constexpr int BLOCKS = 1;
#else
  static constexpr int BLOCKS = TILE.blocks;
#endif
  using CopyA = TileCopy<BM, BK, 32, Tail::of_columns>;
  using CopyB = TileCopy<BK, BN, 32, Tail::of_lines, 1, false, true>;  // all tiles of a tall product have one B
  static constexpr int STAGE_BYTES = TILE.stage_bytes(), PIPELINE_BYTES = TILE.pipeline_bytes(),
                       SHARED_BYTES = TILE.shared_bytes(true), ONE_STAGE_BYTES = TILE.shared_bytes(false);
};

// Starts the copies of what a tile reads of A and B from k on.
template <class T>
__device__ __forceinline__ void copy_operands(const SgemmArgs& p, const Operand& of_a, const Operand& of_b,
                                              const Tile& tile, int64_t k, uint32_t stage, int lane) {
  const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
  typename T::CopyA a(of_a, first_of(of_a, tile.batch, row, k), minus_zeros, lane);
  typename T::CopyB b(of_b, first_of(of_b, tile.batch, k, col), plus_zeros, lane);
  a.lines = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  a.length = b.lines = k_left(p.k - k, T::BK);
  a(stage);
  b(stage + T::CopyA::BYTES);
}

// acc += the product of the stage's tiles, in ascending k.
template <class T>
__device__ __forceinline__ void multiply_stage(float (&acc)[T::TM][T::TN], uint32_t stage, Lane lane) {
  constexpr int A_ROW = T::CopyA::LD * 4, B_ROW = T::CopyB::LD * 4;
  uint32_t a = stage + lane.row * A_ROW, b = stage + T::CopyA::BYTES + lane.col * 16;
#pragma unroll
  for (int k = 0; k < T::BK; k += 4, a += 16, b += 4 * B_ROW) {
    float4 a_rows[T::TM];
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a_rows[i] = ptx::load4(a + i * 8 * A_ROW);
#pragma unroll
    for (int l = 0; l < 4; ++l) {
      float a_frag[T::TM], b_frag[T::TN];
#pragma unroll
      for (int i = 0; i < T::TM; ++i) a_frag[i] = component(a_rows[i], l);
#pragma unroll
      for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], ptx::load4(b + l * B_ROW + j * 16));
      outer_product(acc, a_frag, b_frag);
    }
  }
}

}  // namespace fl
