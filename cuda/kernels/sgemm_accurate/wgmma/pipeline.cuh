// The pipeline of a wgmma product: stages in shared memory that one thread fills by bulk copies while warpgroups
// multiply what the full ones hold. Common to products of persistent blocks, of one tile for each block, and of
// split-K.
#pragma once

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx_wgmma.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/product.cuh"
#include "plan/accurate/wgmma_tiles.h"

namespace fl {

// What a block of 64 k is multiplied by when it is added. The tensor cores truncate: sums of positive products of two
// fp16 terms lose 3 to 3.7 u on average. Two of these are compensated for, and four in every other block, since no
// float gives three; where both operands have low terms: otherwise the products have fewer bits, and may be exact.
// Of data that two terms cannot hold few products make up most of a sum: there it is two in every block.
template <int UNITS>
struct TruncationCompensation {
  unsigned bits, other;  // of 1 + 2u, or of 1; what makes 1 + 4u of it and back
  __device__ __forceinline__ explicit TruncationCompensation(unsigned status)
      : bits(UNITS > 0 && status & STATUS_COMPENSATE ? 0x3f800001u : 0x3f800000u),
        other(UNITS == 3 && bits & 1 ? 3 : 0) {}
  __device__ __forceinline__ float of(int step) const {
    return __uint_as_float(bits + (UNITS == 3 ? bits & step & 1 : 0));
  }
  // Or from step to step, where the number of the step would cost the loop its unrolling.
  __device__ __forceinline__ float now() const { return __uint_as_float(bits); }
  __device__ __forceinline__ void next() { bits ^= other; }
};

// A tile as a kernel sees it.
template <WgmmaTile TILE>
struct Wgmma {
  static_assert(TILE.sound());
  using S = TermsOf<TILE.terms>;
  static constexpr bool BEHIND = TILE.behind;
  using Compensation = TruncationCompensation<TILE.terms == Terms::fp16x2 ? 3 : 2>;
  static constexpr bool UNSWIZZLED = TILE.unswizzled(), TRIANGLE = TILE.triangle, PING_PONG = TILE.ping_pong();
  static constexpr int BM = TILE.BM, BN = TILE.BN, STAGES = TILE.stages;
  static constexpr int LEFT_OUT = TILE.left_out;
  static constexpr bool MAY_BE_APART = TILE.may_be_apart();
  static constexpr int W = TILE.waves, M_GROUPS = TILE.m_groups(), K_GROUPS = TILE.k_groups, PARTS = TILE.k_parts();
  static constexpr int CLUSTER_N = TILE.cluster_n, CLUSTER_K = TILE.cluster_k;
  static constexpr int PART_THREADS = TILE.part_threads(), CONSUMER_THREADS = TILE.consumer_threads(),
                       THREADS = TILE.threads();
  static constexpr int A_CHUNKS = TILE.a_chunks(), B_CHUNKS = TILE.b_chunks();
  static constexpr int A_BYTES = TILE.a_bytes(), B_TERM_BYTES = TILE.b_term_bytes(), B_BYTES = TILE.b_bytes();
  static constexpr int A_STAGED = TILE.a_staged(), B_STAGED = TILE.b_staged();
  static constexpr int STAGE_BYTES = TILE.stage_bytes(), PIPELINE_BYTES = TILE.pipeline_bytes(),
                       BARRIERS = TILE.barriers(), SHARED_BYTES = TILE.shared_bytes();
  // Of persistent blocks.
  static constexpr bool FALLS_BACK = TILE.falls_back;
  static constexpr int CONSUMER_REGISTERS = TILE.consumer_registers(), PRODUCER_REGISTERS = TILE.producer_registers(),
                       FALLBACK_REGISTERS = TILE.FALLBACK_REGISTERS;
  // Of single tiles.
  static constexpr int VECTORS = TILE.vectors(), PART_BYTES = TILE.part_bytes();
};

struct ProductPlan {
  const char *a, *b;  // terms
  int k_blocks, tile_rows, tile_cols, band;
  float second_unit;  // what the products of second terms are multiplied by; if not 1, they have sums of their own
  RangeCheck check;
  AccurateEpilogue out;

  // Tiles of clusters are rows x cols.
  ProductPlan(const AccurateProduct& product, int64_t rows, int64_t cols, int band)
      : a(product.at.a.terms),
        b(product.at.b.terms),
        k_blocks(int(product.at.k_blocks)),
        tile_rows(int(rows)),
        tile_cols(int(cols)),
        band(band),
        second_unit(1 / product.bound.second_scale),
        check(product.range_check()),
        out(product.epilogue()) {}
};

// The tile of a block, in tiles of a block: those of clusters, in bands of rows.
template <class T>
__device__ __forceinline__ TileCorner<int> rasterize(const ProductPlan& plan, int tile, int rank) {
  const auto corner = T::TRIANGLE ? lower_tile(tile, plan.tile_rows, plan.band)
                                  : banded_tile(tile, plan.tile_rows, plan.tile_cols, plan.band);
  return {corner.row, corner.col * T::CLUSTER_N + rank};
}

struct Stages {
  uint32_t tiles, full, empty, checked;  // addresses in shared memory; all but the first are of mbarriers
};

// The stage that is next, and the parity of its barriers' phase.
template <class T>
struct StageState {
  int stage = 0;
  uint32_t parity = 0;
  __device__ __forceinline__ void next() {
    if (++stage == T::STAGES) stage = 0, parity ^= 1;
  }
};

// The producer: what the copying thread reads of a tile.
template <class T>
struct TileProducer {
  const char *a, *b;
  unsigned blocks;  // of a panel

  __device__ __forceinline__ TileProducer(const ProductPlan& plan, const TileCorner<int>& corner, int first = 0)
      : a(plan.a + (std::size_t(plan.k_blocks) * (corner.row * T::A_CHUNKS) + first) * T::A_BYTES),
        b(plan.b + (std::size_t(plan.k_blocks) * (corner.col * T::B_CHUNKS) + first) * T::B_BYTES),
        blocks(plan.k_blocks) {}

  __device__ __forceinline__ void fill(const Stages& stages, int rank, const StageState<T>& at) {
    const uint32_t full = stages.full + 8 * at.stage;
    uint32_t to = stages.tiles + at.stage * T::STAGE_BYTES;
    ptx::barrier_wait(stages.empty + 8 * at.stage, at.parity ^ 1);
    ptx::barrier_expect(full, T::STAGE_BYTES);
#pragma unroll
    for (int c = 0; c < T::A_CHUNKS; ++c, to += T::A_STAGED) {
      const char* from = a + std::size_t{blocks * T::A_BYTES} * c;
      if constexpr (T::CLUSTER_N == 1) ptx::bulk_copy(to, from, T::A_STAGED, full);
      else if (c % 2 == rank) ptx::bulk_copy_to(to, from, T::A_STAGED, full, 3);
    }
#pragma unroll
    for (int c = 0; c < T::B_CHUNKS; ++c, to += T::TRIANGLE ? TERM_BYTES : T::B_STAGED) {
      const char* from = b + std::size_t{blocks * T::B_BYTES} * c;
      if constexpr (T::TRIANGLE) copy_terms(to, from, full);
      else ptx::bulk_copy(to, from, T::B_STAGED, full);
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
      : a(ptx::swizzled_tile(stages.tiles + group * T::W * T::A_STAGED, 16, 1024)),
        b(T::UNSWIZZLED
              ? ptx::plain_tile(stages.tiles + T::A_CHUNKS * T::A_STAGED, 128, 1024)
              : ptx::swizzled_tile(stages.tiles + T::A_CHUNKS * T::A_STAGED, T::TRIANGLE ? 16 : T::B_STAGED, 1024)) {}

  // All products, or those from `FROM` to before `TO`; `begins`: they begin the sums.
  template <int FROM = T::LEFT_OUT, int TO = T::S::PRODUCTS>
  __device__ __forceinline__ void multiply(float (&sum)[T::BN / 2], int stage, int w, bool begins = true) const {
    using S = typename T::S;
#pragma unroll
    for (int product = FROM; product < TO; ++product) {
      const uint32_t from = stage * T::STAGE_BYTES;
      const uint64_t at_a = a + ((from + w * T::A_STAGED + S::a_term(product) * TERM_BYTES) >> 4);
      const uint64_t at_b = b + ((from + S::b_term(product) * B_TERM) >> 4);
#pragma unroll
      for (int step = 0; step < 4; ++step)
        ptx::wgmma<S::KIND == Terms::bf16x6, T::TRIANGLE>(sum, at_a + step * 2, at_b + step * (B_STEP >> 4),
                                                          begins && product == FROM && step == 0 ? 0 : 1);
    }
  }
};

// First thing in a kernel: the barriers of the stages in `memory`. A stage is free once that many warps are done with
// it.
struct BlockRange : RangeShared {
  RangeShared of_two;  // of three terms before two
};
template <class T>
__device__ __forceinline__ Stages begin_stages(const char* memory, BlockRange& range, int warps) {
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

// By one thread, when all are done with them: only then may the memory be used again.
__device__ __forceinline__ void end_stages(const Stages& stages) {
  for (uint32_t barrier = stages.full; barrier <= stages.checked; barrier += 8) ptx::barrier_end(barrier);
}

// By the threads that multiply. Returns the status; if the terms are rejected, nothing is on its way into this block
// any more, where the producer fills `ahead` stages before it knows the status.
template <class T>
__device__ __forceinline__ unsigned check_range(const ProductPlan& plan, const Stages& stages, BlockRange& range,
                                                int ahead) {
  constexpr bool TWO = T::S::KIND == Terms::fp16x2;
  const bool first = blockIdx.x == 0, adds = plan.out.beta != 0.0f, before_two = !TWO && plan.check.words_of_two;
  reduce_range_words<128, T::THREADS>(plan.check, range);
  if (before_two) reduce_range_words<128, T::THREADS>(plan.check.of_two(), range.of_two);
  ptx::named_barrier_sync(7, T::CONSUMER_THREADS);
  unsigned status = status_of(plan.check, range);
  if (T::TRIANGLE && range.flags & RANGE_LOW_A) status |= STATUS_COMPENSATE;  // A's words are B's as well
  // If two terms are rejected for certain, nobody has to make them. Else C, if it is added, has to stay for them.
  const bool certain = before_two && status_of(plan.check.of_two(), range.of_two) & STATUS_REJECTED;
  const unsigned left = certain ? status | STATUS_DONE : STATUS_REJECTED;
  if (before_two && adds && !certain) status = STATUS_DONE;
  if (threadIdx.x == 128) {
    if (first) {
      plan.check.status[0] = status;
      if (before_two) plan.check.status[1] = left;
      // Three terms in this launch say later what they have found.
      if (TWO && !(plan.check.expected && !adds))
        plan.check.status[1] = status & STATUS_REJECTED ? STATUS_REJECTED : STATUS_DONE;
      if (TWO && plan.check.expected && !(status & STATUS_REJECTED)) *plan.check.expected = 0;
    }
    range.status = status;
    ptx::barrier_arrive(stages.checked);
    if (status & STATUS_ELSEWHERE)
      for (int stage = 0; stage < ahead; ++stage) ptx::barrier_wait(stages.full + 8 * stage, 0);
  }
  return status;
}

}  // namespace fl
