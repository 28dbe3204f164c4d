// The stages in shared memory through which a product from sliced operands goes: how they are filled and multiplied.
#pragma once

#include "sliced_epilogue.cuh"
#include "sliced_verdict.cuh"

namespace fl {

struct ProductPlan {
  const char *a, *b;  // slices
  int k_blocks, tile_rows, tile_cols, band;
  Guard guard;
  Epilogue out;
};

struct ProductCorner {
  int row, col;  // in tiles of a block
};
// Tiles of clusters in bands of rows, down and then across: what runs at a time reads few rows and columns.
template <class T>
__device__ __forceinline__ ProductCorner corner_of(const ProductPlan& plan, int tile, int rank) {
  const int per_band = plan.band * plan.tile_cols, first = tile / per_band * plan.band;
  const int rows = min(plan.band, plan.tile_rows - first), in_band = tile % per_band;
  return {first + in_band % rows, in_band / rows * T::CLUSTER + rank};
}

struct Stages {
  uint32_t tiles, full, empty, decided;  // addresses in shared memory
};

template <class T>
struct StageCursor {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == T::STAGES) stage = 0, parity ^= 1;
  }
};

// What the copying thread reads of a tile.
template <class T>
struct TileSource {
  const char *a, *b;
  unsigned strip_bytes;

  __device__ __forceinline__ TileSource(const ProductPlan& plan, int tile, int rank)
      : strip_bytes(plan.k_blocks * BLOCK_BYTES<typename T::S>) {
    const ProductCorner corner = corner_of<T>(plan, tile, rank);
    a = plan.a + std::size_t{strip_bytes} * (corner.row * T::A_CHUNKS);
    b = plan.b + std::size_t{strip_bytes} * (corner.col * T::B_CHUNKS);
  }

  __device__ __forceinline__ void fill(const Stages& stages, int rank, const StageCursor<T>& at) {
    constexpr int BLOCK = BLOCK_BYTES<typename T::S>;
    const uint32_t full = stages.full + 8 * at.stage;
    uint32_t to = stages.tiles + at.stage * T::STAGE_BYTES;
    ptx::barrier_wait(stages.empty + 8 * at.stage, at.parity ^ 1);
    ptx::barrier_expect(full, T::STAGE_BYTES);
#pragma unroll
    for (int c = 0; c < T::A_CHUNKS; ++c, to += BLOCK) {
      const char* from = a + std::size_t{strip_bytes} * c;
      if constexpr (T::CLUSTER == 1) ptx::bulk_copy(to, from, BLOCK, full);
      else if (c % 2 == rank) ptx::bulk_copy_to(to, from, BLOCK, full, 3);
    }
#pragma unroll
    for (int c = 0; c < T::B_CHUNKS; ++c, to += BLOCK)
      ptx::bulk_copy(to, b + std::size_t{strip_bytes} * c, BLOCK, full);
    a += BLOCK, b += BLOCK;
  }
};

// What a warpgroup multiplies of a stage.
template <class T>
struct StageTiles {
  static constexpr int BLOCK = BLOCK_BYTES<typename T::S>;
  uint64_t a, b;
  __device__ __forceinline__ StageTiles(const Stages& stages, int group)
      : a(ptx::swizzled_tile(stages.tiles + group * T::W * BLOCK, 16, 1024)),
        b(ptx::swizzled_tile(stages.tiles + T::A_CHUNKS * BLOCK, BLOCK, 1024)) {}

  __device__ __forceinline__ void multiply(float (&sum)[T::BN / 2], int stage, int w) const {
    using S = typename T::S;
#pragma unroll
    for (int product = 0; product < S::PRODUCTS; ++product) {
      const uint64_t at_a = a + (uint32_t(stage * T::STAGE_BYTES + w * BLOCK + S::a_slice(product) * SLICE_BYTES) >> 4);
      const uint64_t at_b = b + (uint32_t(stage * T::STAGE_BYTES + S::b_slice(product) * SLICE_BYTES) >> 4);
#pragma unroll
      for (int step = 0; step < 4; ++step)
        ptx::wgmma<S::KIND == Slices::bf16x6>(sum, at_a + step * 2, at_b + step * 128,
                                              product == 0 && step == 0 ? 0 : 1);
    }
  }
};

}  // namespace fl
