// What a block of a product by mma.sync computes, and the copies of terms to its stages in shared memory.
#pragma once

#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/fallback/fallback_tile.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"
#include "plan/accurate/mma_tiles.h"

namespace fl {

// A tile as a kernel sees it.
template <MmaTile TILE>
struct Mma {
  static_assert(TILE.sound());
  using S = TermsOf<TILE.terms>;
  static constexpr bool ASYNC = TILE.async(), PERSISTENT = TILE.persistent(), STRIPS = TILE.strips(),
                        FALLS_BACK = TILE.falls_back();
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, MT = TILE.MT(), NT = TILE.NT();
  static constexpr int WARPS_N = TILE.warps_n, K_GROUPS = TILE.k_groups, STAGES = TILE.stages, BLOCKS = TILE.blocks;
  static constexpr int GROUP_THREADS = TILE.group_threads(), THREADS = TILE.threads();
  static constexpr int A_TERM_BYTES = TILE.a_term_bytes(), B_TERM_BYTES = TILE.b_term_bytes(),
                       STRIP_BYTES = TILE.strip_bytes(), STAGE_BYTES = TILE.stage_bytes(),
                       GROUP_BYTES = TILE.group_bytes();
  static constexpr int EXPONENTS = TILE.exponents(), EXPONENT_BYTES = TILE.exponents_bytes(), STATUS = TILE.status(),
                       SHARED_BYTES = TILE.shared_bytes();
};
static_assert(sizeof(RangeShared) == RANGE_CHECK_BYTES);

struct MmaPlan {
  const char *a, *b;  // terms
  int k_blocks, tile_rows, tile_cols;
  bool by16;  // C takes 16-byte accesses
  RangeCheck check;
  AccurateEpilogue out;
  Fallback fallback;
  SplitKSums to;  // of more than one part: where their sums go in place of C
};

// What a block computes between two stores: a tile of C, or with split-K the blocks of 64 k from `first` on of one.
struct MmaUnit {
  int tile, part, first, count;
};
// Blocks that run at a time have the same part of many tiles.
template <bool SPLIT_K>
__device__ __forceinline__ MmaUnit unit_of(const MmaPlan& plan, int unit) {
  if constexpr (!SPLIT_K) return {unit, 0, 0, plan.k_blocks};
  const int tiles = plan.tile_rows * plan.tile_cols, part = unit / tiles;
  const int first = plan.k_blocks * part / plan.to.parts;  // up to 2^14 and some hundred
  return {unit - part * tiles, part, first, plan.k_blocks * (part + 1) / plan.to.parts - first};
}

struct MmaTileOrigin {
  int row, col;  // of C
};
template <class T>
__device__ __forceinline__ MmaTileOrigin rasterize(const MmaPlan& plan, int tile) {
  const auto corner = banded_tile(tile, plan.tile_rows, plan.tile_cols, 8);
  return {corner.row * T::BM, corner.col * T::BN};
}

// Copies what lies next in the terms, for the group of the thread. Nothing here is conditional, so that the copies may
// be issued between products; a block without another tile copies its last one again, which nobody reads.
template <class T>
class MmaProducer {
 public:
  using S = typename T::S;
  __device__ __forceinline__ explicit MmaProducer(const MmaPlan& plan) : plan_(plan) {}

  __device__ __forceinline__ void begin(uint32_t exponents, const MmaUnit& unit) {
    const MmaTileOrigin corner = rasterize<T>(plan_, unit.tile);
    const unsigned t = thread(), group = threadIdx.x / T::GROUP_THREADS;
    first_row_ = corner.row % TERM_BLOCK;
    a_ = panel_bytes() / 16 * (corner.row / TERM_BLOCK);
    if constexpr (T::STRIPS) {  // four threads to a row of a strip, whose halves of a row are in a swizzle of their own
      const unsigned strip = corner.col / 32 + t * 16 / T::STRIP_BYTES, row = t % (T::STRIP_BYTES / 16) / 4;
      odd_strip_ = strip % 2;
      b_ = panel_bytes() / 16 * (strip / 2) + row * 8 + (t % 4 ^ row / 2 % 4 ^ row % 8 ^ odd_strip_ * 4);
    } else {
      b_ = panel_bytes() / 16 * (corner.col / TERM_BLOCK) + t;
    }
    if constexpr (T::BK == 32) {
      const unsigned before = group / 2 * (BLOCK_BYTES<S> / 16), half = group % 2, row = t / 4;
      a_ += before + row * 8 + (t % 4 + half * 4 ^ row % 8);
      b_ += before + half * 256;
    } else {
      a_ += group * (BLOCK_BYTES<S> / 16) + t, b_ += group * (BLOCK_BYTES<S> / 16);
    }
    a_ += unsigned(unit.first) * (BLOCK_BYTES<S> / 16), b_ += unsigned(unit.first) * (BLOCK_BYTES<S> / 16);
    const int at = int(t) * 4;
    if (at < T::BM + T::BN && group == 0)
      copy(exponents + at * 4,
           at < T::BM ? plan_.out.a_exponents + corner.row + at : plan_.out.b_exponents + corner.col + at - T::BM);
  }

  // What comes next of k into a stage. A stage of 64 k is as memory; in one of 32 k the rows of A are half as long and
  // in a swizzle of their own. Through registers it is what was read the last time; the first time, nothing.
  template <bool FIRST = false>
  __device__ __forceinline__ void fill(uint32_t stage) {
    const uint32_t to_b = stage + S::COUNT * T::A_TERM_BYTES + thread() * 16,
                   to_a = stage + (T::BK == 64 ? thread() * 16 : thread() * 16 ^ (thread() / 8 % 4 << 4));
    const char* const a = plan_.a + std::size_t(a_) * 16;
#pragma unroll
    for (int term = 0; term < S::COUNT; ++term) {
#pragma unroll
      for (int i = 0; i < OF_A; ++i)
        move<FIRST>(term * OF_BOTH + i, to_a + term * T::A_TERM_BYTES + i * STEP,
                    a + row_offset(i * STEP / (T::BK * 2)) + term * TERM_BYTES);
#pragma unroll
      for (int i = 0; i < OF_B; ++i)
        if ((i + 1) * STEP <= T::B_TERM_BYTES || i * STEP + thread() * 16 < T::B_TERM_BYTES)
          move<FIRST>(term * OF_BOTH + OF_A + i, to_b + term * T::B_TERM_BYTES + i * STEP,
                      b_source(i * STEP) + term * TERM_BYTES);
    }
    if constexpr (T::ASYNC) ptx::commit_copies();
    constexpr unsigned BLOCK = BLOCK_BYTES<S> / 16;
    if constexpr (T::BK == 64) {
      a_ += T::K_GROUPS * BLOCK, b_ += T::K_GROUPS * BLOCK;
    } else if constexpr (T::K_GROUPS == 1) {  // the other half of a block of 64 k, which a bit of b_ tells
      if (b_ & 256) a_ += BLOCK, b_ += BLOCK;
      a_ ^= 4, b_ ^= 256;
    } else {
      a_ += T::K_GROUPS / 2 * BLOCK, b_ += T::K_GROUPS / 2 * BLOCK;
    }
  }

 private:
  static __device__ __forceinline__ unsigned thread() { return threadIdx.x % T::GROUP_THREADS; }
  __device__ __forceinline__ unsigned panel_bytes() const {  // of 64 lines
    return unsigned(plan_.k_blocks) * BLOCK_BYTES<S>;
  }
  static constexpr int STEP = T::GROUP_THREADS * 16, OF_A = T::A_TERM_BYTES / STEP,
                       OF_B = int(ceil_div(T::B_TERM_BYTES, STEP)), OF_BOTH = OF_A + OF_B;
  static_assert(T::A_TERM_BYTES % STEP == 0 && (T::STRIPS || T::B_TERM_BYTES % STEP == 0));

  __device__ __forceinline__ std::size_t row_offset(int rows) const {
    const int row = rows + (T::BM % TERM_BLOCK == 0 ? 0 : first_row_);
    return std::size_t(panel_bytes() * (row / TERM_BLOCK)) + row % TERM_BLOCK * 128;
  }
  // From where what lies `bytes` behind the thread's first piece of a term of B in a stage is copied.
  __device__ __forceinline__ const char* b_source(int bytes) const {
    constexpr int PANEL = TERM_BLOCK * T::BK * 2;
    if constexpr (!T::STRIPS) return plan_.b + std::size_t(b_) * 16 + panel_bytes() * (bytes / PANEL) + bytes % PANEL;
    const int strip = bytes / T::STRIP_BYTES, rows = bytes % T::STRIP_BYTES / 64;
    const char* const b = plan_.b + std::size_t(strip % 2 ? b_ ^ 4 : b_) * 16 + rows * 128;
    return b + std::size_t(panel_bytes()) * (strip / 2 + (strip % 2 ? odd_strip_ : 0));
  }
  template <bool FIRST>
  __device__ __forceinline__ void move(int i, uint32_t to, const char* from) {
    if constexpr (T::ASYNC) {
      copy(to, from);
    } else {
      if constexpr (!FIRST) ptx::store4(to, staged_[i]);
      staged_[i] = __ldg(reinterpret_cast<const float4*>(from));
    }
  }
  static __device__ __forceinline__ void copy(uint32_t to, const void* from) {
    if constexpr (T::ASYNC) ptx::copy_async16(to, static_cast<const float*>(from));
    else ptx::store4(to, *static_cast<const float4*>(from));
  }
  const MmaPlan& plan_;
  int first_row_ = 0;       // of the tile in its panel
  unsigned a_ = 0, b_ = 0;  // where the thread copies from, in units of 16 bytes
  unsigned odd_strip_ = 0;  // whether its first strip is the second of a panel
  float4 staged_[T::ASYNC ? 1 : S::COUNT * OF_BOTH];
};

// Until at most so many of the last fills are on their way; those through registers are there with the next barrier.
template <class T, int LEFT>
__device__ __forceinline__ void wait_fills() {
  if constexpr (T::ASYNC) ptx::wait_copies<LEFT>();
}

}  // namespace fl
