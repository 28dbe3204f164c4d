// The stages in shared memory through which a product from sliced operands goes: how they are filled and multiplied.
#pragma once

#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_verdict.cuh"

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
// The tiles of clusters, in bands of rows.
template <class T>
__device__ __forceinline__ ProductCorner corner_of(const ProductPlan& plan, int tile, int rank) {
  const auto corner = banded_tile(tile, plan.tile_rows, plan.tile_cols, plan.band);
  return {corner.row, corner.col * T::CLUSTER + rank};
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

// What a stage has: blocks of 64 lines of A, and of B blocks of 64 columns, or one of as many as the tile has. That is
// packed without a swizzle. It was two blocks, the second half empty, and a multiprocessor that takes 64 bytes from
// L2 in a clock waited for that: 14.13 us for 13.51 at 768, 33.5 for 32.5 at 1536, 88.7 for 85.4 at 2560.
template <class S_, int BM, int BN>
struct StageShape {
  using S = S_;
  static constexpr bool PACKED = BN % SLICE_BLOCK != 0;
  static constexpr int A_CHUNKS = BM / 64, B_CHUNKS = PACKED ? 1 : BN / 64;
  static constexpr int A_BYTES = BLOCK_BYTES<S>, B_SLICE = (PACKED ? BN : 64) * SLICE_LINE_BYTES;  // of a chunk
  static constexpr int B_BYTES = S::COUNT * B_SLICE, STAGE_BYTES = A_CHUNKS * A_BYTES + B_CHUNKS * B_BYTES;
};

// What the copying thread reads of a tile.
template <class T>
struct TileSource {
  const char *a, *b;
  unsigned blocks;  // of a strip

  __device__ __forceinline__ TileSource(const ProductPlan& plan, int tile, int rank, int first = 0)
      : blocks(plan.k_blocks) {
    const ProductCorner corner = corner_of<T>(plan, tile, rank);
    a = plan.a + (std::size_t{blocks} * (corner.row * T::A_CHUNKS) + first) * T::A_BYTES;
    b = plan.b + (std::size_t{blocks} * (corner.col * T::B_CHUNKS) + first) * T::B_BYTES;
  }

  __device__ __forceinline__ void fill(const Stages& stages, int rank, const StageCursor<T>& at) {
    const uint32_t full = stages.full + 8 * at.stage;
    uint32_t to = stages.tiles + at.stage * T::STAGE_BYTES;
    ptx::barrier_wait(stages.empty + 8 * at.stage, at.parity ^ 1);
    ptx::barrier_expect(full, T::STAGE_BYTES);
#pragma unroll
    for (int c = 0; c < T::A_CHUNKS; ++c, to += T::A_BYTES) {
      const char* from = a + std::size_t{blocks * T::A_BYTES} * c;
      if constexpr (T::CLUSTER == 1) ptx::bulk_copy(to, from, T::A_BYTES, full);
      else if (c % 2 == rank) ptx::bulk_copy_to(to, from, T::A_BYTES, full, 3);
    }
#pragma unroll
    for (int c = 0; c < T::B_CHUNKS; ++c, to += T::B_BYTES)
      ptx::bulk_copy(to, b + std::size_t{blocks * T::B_BYTES} * c, T::B_BYTES, full);
    a += T::A_BYTES, b += T::B_BYTES;
  }
};

// What a warpgroup multiplies of a stage.
template <class T>
struct StageTiles {
  static constexpr int B_STEP = T::PACKED ? 256 : 2048;  // bytes between 16 k and the next
  uint64_t a, b;
  __device__ __forceinline__ StageTiles(const Stages& stages, int group)
      : a(ptx::swizzled_tile(stages.tiles + group * T::W * T::A_BYTES, 16, 1024)),
        b(T::PACKED ? ptx::plain_tile(stages.tiles + T::A_CHUNKS * T::A_BYTES, 128, 1024)
                    : ptx::swizzled_tile(stages.tiles + T::A_CHUNKS * T::A_BYTES, T::B_BYTES, 1024)) {}

  __device__ __forceinline__ void multiply(float (&sum)[T::BN / 2], int stage, int w) const {
    using S = typename T::S;
#pragma unroll
    for (int product = 0; product < S::PRODUCTS; ++product) {
      const uint64_t at_a =
          a + (uint32_t(stage * T::STAGE_BYTES + w * T::A_BYTES + S::a_slice(product) * SLICE_BYTES) >> 4);
      const uint64_t at_b = b + (uint32_t(stage * T::STAGE_BYTES + S::b_slice(product) * T::B_SLICE) >> 4);
#pragma unroll
      for (int step = 0; step < 4; ++step)
        ptx::wgmma<S::KIND == Slices::bf16x6>(sum, at_a + step * 2, at_b + step * (B_STEP >> 4),
                                              product == 0 && step == 0 ? 0 : 1);
    }
  }
};

}  // namespace fl
