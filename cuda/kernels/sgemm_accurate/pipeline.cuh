// The pipeline of a wgmma product: stages in shared memory that one thread fills by bulk copies while warpgroups
// multiply what the full ones hold. Common to products of persistent blocks, of one tile for each block, and of
// split-K.
#pragma once

#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"

namespace fl {

struct ProductPlan {
  const char *a, *b;  // terms
  int k_blocks, tile_rows, tile_cols, band;
  RangeCheck check;
  AccurateEpilogue out;
};

// The tile of a block, in tiles of a block: those of clusters, in bands of rows.
template <class T>
__device__ __forceinline__ TileCorner<int> rasterize(const ProductPlan& plan, int tile, int rank) {
  const auto corner = T::TRIANGLE ? lower_tile(tile, plan.tile_rows, plan.band)
                                  : banded_tile(tile, plan.tile_rows, plan.tile_cols, plan.band);
  return {corner.row, corner.col * T::CLUSTER + rank};
}

struct Stages {
  uint32_t tiles, full, empty, checked;  // addresses in shared memory; all but the first are of mbarriers
};

// The stage that is next, and the parity of its barriers' phase.
template <class T>
struct PipelineState {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == T::STAGES) stage = 0, parity ^= 1;
  }
};

// What a stage has: blocks of 64 lines of A, and of B blocks of 64 columns, or one of as many as the tile has. That is
// stored without a swizzle. It was two blocks, the second half empty, and a multiprocessor that takes 64 bytes from
// L2 in a clock waited for that: 14.13 us for 13.51 at 768, 33.5 for 32.5 at 1536, 88.7 for 85.4 at 2560.
template <class S_, int BM, int BN>
struct StageShape {
  using S = S_;
  static constexpr bool UNSWIZZLED = BN % TERM_BLOCK != 0;
  static constexpr int A_CHUNKS = BM / 64, B_CHUNKS = UNSWIZZLED ? 1 : BN / 64;
  static constexpr int A_BYTES = BLOCK_BYTES<S>, B_TERM_BYTES = (UNSWIZZLED ? BN : 64) * TERM_ROW_BYTES;  // of a chunk
  static constexpr int B_BYTES = S::COUNT * B_TERM_BYTES, STAGE_BYTES = A_CHUNKS * A_BYTES + B_CHUNKS * B_BYTES;
  static constexpr bool TRIANGLE = false;
};

// The same tile where B is A transposed: those on and below the diagonal of C are computed. The terms of A serve as B,
// too; its blocks lie in a stage term by term, so that the lines of a term follow one another.
template <class Tile>
struct TriangleTile : Tile {
  static constexpr bool TRIANGLE = true;
  static_assert(Tile::BM == Tile::BN * Tile::CLUSTER,
                "the tiles of clusters are squares, so that they meet the diagonal");
  static_assert(!Tile::UNSWIZZLED, "the terms of A have panels of 64 lines");
};

// The producer: what the copying thread reads of a tile.
template <class T>
struct TileProducer {
  const char *a, *b;
  unsigned blocks;  // of a panel

  __device__ __forceinline__ TileProducer(const ProductPlan& plan, int tile, int rank, int first = 0)
      : blocks(plan.k_blocks) {
    const TileCorner<int> corner = rasterize<T>(plan, tile, rank);
    a = plan.a + (std::size_t{blocks} * (corner.row * T::A_CHUNKS) + first) * T::A_BYTES;
    b = plan.b + (std::size_t{blocks} * (corner.col * T::B_CHUNKS) + first) * T::B_BYTES;
  }

  __device__ __forceinline__ void fill(const Stages& stages, int rank, const PipelineState<T>& at) {
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
    for (int c = 0; c < T::B_CHUNKS; ++c, to += T::TRIANGLE ? TERM_BYTES : T::B_BYTES) {
      const char* from = b + std::size_t{blocks * T::B_BYTES} * c;
      if constexpr (T::TRIANGLE) copy_terms(to, from, full);
      else ptx::bulk_copy(to, from, T::B_BYTES, full);
    }
    a += T::A_BYTES, b += T::B_BYTES;
  }

 private:
  static __device__ __forceinline__ void copy_terms(uint32_t to, const char* from, uint32_t full) {
#pragma unroll
    for (int term = 0; term < T::S::COUNT; ++term)
      ptx::bulk_copy(to + term * T::B_CHUNKS * TERM_BYTES, from + term * TERM_BYTES, TERM_BYTES, full);
  }
};

// The consumer: what a warpgroup multiplies of a stage.
template <class T>
struct StageOperands {
  // Bytes between 16 k and the next, and between the terms.
  static constexpr int B_STEP = T::TRIANGLE ? 32 : T::UNSWIZZLED ? 256 : 2048;
  static constexpr int B_TERM = T::TRIANGLE ? T::B_CHUNKS * TERM_BYTES : T::B_TERM_BYTES;
  uint64_t a, b;
  __device__ __forceinline__ StageOperands(const Stages& stages, int group)
      : a(ptx::swizzled_tile(stages.tiles + group * T::W * T::A_BYTES, 16, 1024)),
        b(T::UNSWIZZLED
              ? ptx::plain_tile(stages.tiles + T::A_CHUNKS * T::A_BYTES, 128, 1024)
              : ptx::swizzled_tile(stages.tiles + T::A_CHUNKS * T::A_BYTES, T::TRIANGLE ? 16 : T::B_BYTES, 1024)) {}

  __device__ __forceinline__ void multiply(float (&sum)[T::BN / 2], int stage, int w) const {
    using S = typename T::S;
#pragma unroll
    for (int product = 0; product < S::PRODUCTS; ++product) {
      const uint64_t at_a =
          a + (uint32_t(stage * T::STAGE_BYTES + w * T::A_BYTES + S::a_term(product) * TERM_BYTES) >> 4);
      const uint64_t at_b = b + (uint32_t(stage * T::STAGE_BYTES + S::b_term(product) * B_TERM) >> 4);
#pragma unroll
      for (int step = 0; step < 4; ++step)
        ptx::wgmma<S::KIND == Terms::bf16x6, T::TRIANGLE>(sum, at_a + step * 2, at_b + step * (B_STEP >> 4),
                                                          product == 0 && step == 0 ? 0 : 1);
    }
  }
};

// First thing in a kernel: the barriers of the stages in `memory`. A stage is free once that many warps are done with
// it.
template <class T>
__device__ __forceinline__ Stages begin_stages(const char* memory, RangeShared& range, int warps) {
  const uint32_t shared = (ptx::shared_address(memory) + 1023) & ~1023u;
  constexpr int FULL = T::BARRIERS, EMPTY = FULL + 8 * T::STAGES, CHECKED = EMPTY + 8 * T::STAGES;
  const Stages stages{shared, shared + FULL, shared + EMPTY, shared + CHECKED};
  if (threadIdx.x == 0) {
    range = {};
    for (int s = 0; s < T::STAGES; ++s) {
      ptx::barrier_init(stages.full + 8 * s, 1);
      ptx::barrier_init(stages.empty + 8 * s, warps);
    }
    ptx::barrier_init(stages.checked, 1);
    ptx::barrier_init_fence();
  }
  return stages;
}

// By the threads that multiply. Returns the status; if the terms are rejected, nothing is on its way into this block
// any more, where the producer fills `ahead` stages before it knows the status.
template <class T>
__device__ __forceinline__ unsigned check_range(const ProductPlan& plan, const Stages& stages, RangeShared& range,
                                                int ahead) {
  reduce_range_words<128, T::THREADS>(plan.check, range);
  ptx::named_barrier_sync(7, T::CONSUMER_THREADS);
  unsigned status = status_of(plan.check, range);
  if (T::TRIANGLE && range.flags & RANGE_LOW_A) status |= STATUS_COMPENSATE;  // A's words are B's as well
  if (threadIdx.x == 128) {
    if (blockIdx.x == 0) *plan.check.status = status;
    range.status = status;
    ptx::barrier_arrive(stages.checked);
    if (status & STATUS_REJECTED)
      for (int stage = 0; stage < ahead; ++stage) ptx::barrier_wait(stages.full + 8 * stage, 0);
  }
  return status;
}

// What a block of 64 k is multiplied by when it is added. The tensor cores truncate: sums of positive products of two
// fp16 terms lose 3 to 3.7 u on average. Two of these are compensated for, and four in every other block, since no
// float gives three; where both operands have low terms: otherwise the products have fewer bits, and may be exact.
template <class S>
struct TruncationCompensation {
  unsigned bits, other;  // of 1 + 2u, or of 1; what makes 1 + 4u of it and back
  __device__ __forceinline__ explicit TruncationCompensation(unsigned status)
      : bits(S::KIND == Terms::fp16x2 && status & STATUS_COMPENSATE ? 0x3f800001u : 0x3f800000u),
        other(bits & 1 ? 3 : 0) {}
  __device__ __forceinline__ float of(int step) const { return __uint_as_float(bits + (bits & step & 1)); }
  // Or from step to step, where the number of the step would cost the loop its unrolling.
  __device__ __forceinline__ float now() const { return __uint_as_float(bits); }
  __device__ __forceinline__ void next() { bits ^= other; }
};

}  // namespace fl
