// The product of two operands that the split pass has cut into terms of 16 bits, with instructions that every GPU from
// compute capability 8.0 on has: cp.async, ldmatrix and mma.sync.
//
// The terms lie in memory as the tensor cores read them, so stages are filled by plain copies, and read without bank
// conflicts.
//
// A warp holds its columns of B for a stage of 32 or 64 k in registers, all terms, and takes its rows of A sixteen at a
// time. All products of such a strip go into one temporary accumulator, the small ones first because the tensor cores
// truncate, and that is added to the float32 sums. So there is one accumulator of a strip beside the sums, and a
// fragment is read from shared memory once for all products: 128 bytes for an instruction of a warp with 64 x 32, 4 of
// which a multiprocessor begins every 6 cycles at best, where shared memory gives 128 bytes a cycle. Each term is read
// again for what comes next as soon as its last product is issued.
//
// What bounds it, and what lost: docs/sgemm_accurate.md.
#pragma once

#include "core/device_spec.h"
#include "cuda/kernels/common/ptx_mma.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"

namespace fl {

// MT fragments of 16 rows and NT of 8 columns for each of WARP_ROWS x WARP_COLS warps, which are a group. K_GROUPS
// groups share the k of a tile: each takes every K_GROUPS-th 32 k, in stages of its own.
// Without INSTRUCTIONS_OF_80 instructions take 8 k, and copies go by way of registers.
template <class S_, int BK_, int MT_, int NT_, int WARP_ROWS_, int WARP_COLS_, int K_GROUPS_, int STAGES_,
          int RESIDENT_, bool INSTRUCTIONS_OF_80_ = true, bool PERSISTENT_ = K_GROUPS_ == 1>
struct MmaTile {
  using S = S_;
  static constexpr bool INSTRUCTIONS_OF_80 = INSTRUCTIONS_OF_80_;
  static constexpr int MT = MT_, NT = NT_, WARP_ROWS = WARP_ROWS_, WARP_COLS = WARP_COLS_, K_GROUPS = K_GROUPS_;
  static constexpr int STAGES = STAGES_, RESIDENT = RESIDENT_, BK = BK_;
  static constexpr int BM = 16 * MT * WARP_ROWS, BN = 8 * NT * WARP_COLS;
  static constexpr int GROUP_THREADS = 32 * WARP_ROWS * WARP_COLS, THREADS = GROUP_THREADS * K_GROUPS;
  static constexpr bool PERSISTENT = PERSISTENT_;
  static constexpr int A_TERM_BYTES = BM * BK * 2, B_TERM_BYTES = BN * BK * 2,
                       STAGE_BYTES = S::COUNT * (A_TERM_BYTES + B_TERM_BYTES), GROUP_BYTES = STAGES * STAGE_BYTES;
  static constexpr int SUM_BYTES = K_GROUPS == 1 ? 0 : K_GROUPS * BM * BN * 4;  // where the stages were
  static constexpr int EXPONENTS = GROUP_BYTES * K_GROUPS > SUM_BYTES ? GROUP_BYTES* K_GROUPS : SUM_BYTES;
  static constexpr int EXPONENT_BYTES = (BM + BN) * 4;
  static constexpr int STATUS = EXPONENTS + (PERSISTENT ? 2 : 1) * EXPONENT_BYTES,
                       SHARED_BYTES = STATUS + int(sizeof(RangeShared));
  // Whole panels of B lie in a stage as in memory, 64 columns side by side; others in strips of 32.
  static constexpr bool STRIPS = BN % TERM_BLOCK != 0;
  static constexpr int STRIP_BYTES = 32 * BK * 2;
  static_assert((BK == 32 || BK == 64) && BM % 16 == 0 && BN % 32 == 0 && (STRIPS || NT == 4 || NT == 8));
  // The float32 fallback is in the same kernel. Persistent tiles are slower with it: 246 us for 234 at 4096.
  static constexpr bool FALLS_BACK = THREADS == FALLBACK_THREADS && !PERSISTENT && SHARED_BYTES >= FALLBACK_SHARED;
  static_assert(GROUP_THREADS * 4 >= BM + BN, "a thread copies four exponents");
  static_assert(STAGES * K_GROUPS <= TERMS_SMALLEST_K / BK, "the copies that are ahead would leave the first tile");
  static_assert(INSTRUCTIONS_OF_80 || PERSISTENT);
  static_assert(!PERSISTENT || K_GROUPS == 1);
};

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
  // in a swizzle of their own. By way of registers it is what was read the last time; the first time, nothing.
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
    if constexpr (T::INSTRUCTIONS_OF_80) ptx::commit_copies();
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
    if constexpr (T::INSTRUCTIONS_OF_80) {
      copy(to, from);
    } else {
      if constexpr (!FIRST) ptx::store4(to, staged_[i]);
      staged_[i] = __ldg(reinterpret_cast<const float4*>(from));
    }
  }
  static __device__ __forceinline__ void copy(uint32_t to, const void* from) {
    if constexpr (T::INSTRUCTIONS_OF_80) ptx::copy_async16(to, static_cast<const float*>(from));
    else ptx::store4(to, *static_cast<const float4*>(from));
  }
  const MmaPlan& plan_;
  int first_row_ = 0;       // of the tile in its panel
  unsigned a_ = 0, b_ = 0;  // where the thread copies from, in units of 16 bytes
  unsigned odd_strip_ = 0;  // whether its first strip is the second of a panel
  float4 staged_[T::INSTRUCTIONS_OF_80 ? 1 : S::COUNT * OF_BOTH];
};

template <class T>
using MmaSums = float[T::MT][T::NT][4];

// The fragments that a warp multiplies: its columns of B for a whole stage, and 16 rows of A. Terms, 16 k, registers.
template <class T>
struct MmaFragments {
  using S = typename T::S;
  static constexpr int KS = T::BK / 16;
  uint32_t a[S::COUNT][KS][4], b[S::COUNT][KS][T::NT / 2][4];

  __device__ __forceinline__ void load_a(int term, uint32_t from) {
#pragma unroll
    for (int s = 0; s < KS; ++s) ptx::load_matrices(a[term][s], (from ^ s * 32) + term * T::A_TERM_BYTES);
  }
  __device__ __forceinline__ void load_b(int term, uint32_t from) {
    // Of strips, a warp with an odd number of pairs may begin with the second pair of a strip.
    const uint32_t next_strip = T::STRIPS && T::NT % 4 != 0 ? threadIdx.x / 32 % T::WARP_COLS % 2 * T::STRIP_BYTES : 0;
#pragma unroll
    for (int s = 0; s < KS; ++s)
#pragma unroll
      for (int pair = 0; pair < T::NT / 2; ++pair) {
        const uint32_t at =
            T::STRIPS ? (from ^ pair % 2 * 32) + pair / 2 * T::STRIP_BYTES + pair % 2 * next_strip : from ^ pair * 32;
        ptx::load_matrices_transposed(b[term][s][pair], at + term * T::B_TERM_BYTES + s * 16 * (T::STRIPS ? 64 : 128));
      }
  }
  __device__ __forceinline__ void multiply(float (&sums)[T::NT][4], int a_term, int b_term) const {
#pragma unroll
    for (int s = 0; s < KS; ++s)
#pragma unroll
      for (int j = 0; j < T::NT; ++j) {
        const uint32_t *const x = &b[b_term][s][j / 2][j % 2 * 2], *const y = a[a_term][s];
        if constexpr (!T::INSTRUCTIONS_OF_80)
          ptx::mma_k8(sums[j], y[0], y[1], x[0], sums[j]), ptx::mma_k8(sums[j], y[2], y[3], x[1], sums[j]);
        else if constexpr (S::KIND == Terms::fp16x2) ptx::mma(sums[j], a[a_term][s], x[0], x[1], sums[j]);
        else ptx::mma_bf16(sums[j], a[a_term][s], x[0], x[1], sums[j]);
      }
  }
};

// The last of the products of a strip that reads a term.
template <class S>
constexpr int last_use(bool of_a, int term) {
  int last = 0;
  for (int product = 0; product < S::PRODUCTS; ++product)
    if ((of_a ? S::a_term(product) : S::b_term(product)) == term) last = product;
  return last;
}

// One warp's part of a stage, whose first fragments are in registers already. Each term is loaded for what comes next
// as soon as its last product is issued, in the last strip from the next stage, which next_stage() has waited for.
template <class T, class NextStage>
__device__ __forceinline__ void multiply_stage(MmaSums<T>& sums, MmaFragments<T>& x, uint32_t a_at, uint32_t next_a_at,
                                               uint32_t next_b_at, NextStage&& next_stage) {
  using S = typename T::S;
#pragma unroll
  for (int i = 0; i < T::MT; ++i) {
    const bool last = i + 1 == T::MT;
    float sum[T::NT][4] = {};
#pragma unroll
    for (int product = 0; product < S::PRODUCTS; ++product) {
      x.multiply(sum, S::a_term(product), S::b_term(product));
      if (last && product == 0) next_stage();
#pragma unroll
      for (int term = 0; term < S::COUNT; ++term) {
        if (last_use<S>(true, term) == product) x.load_a(term, last ? next_a_at : a_at + (i + 1) * 16 * T::BK * 2);
        if (last && last_use<S>(false, term) == product) x.load_b(term, next_b_at);
      }
    }
#pragma unroll
    for (int j = 0; j < T::NT; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r) sums[i][j][r] += sum[j][r];
  }
}

// Four neighbours of a row of C, from sums of scaled numbers.
__device__ __forceinline__ void store_any(const MmaPlan& plan, int row, int col, const float4& sum, int down,
                                          const int4& back) {
  const AccurateEpilogue& out = plan.out;
  const int exist = row < out.m ? out.n - col : 0;
  const float x[4] = {scale_wide(sum.x, -down - back.x) * out.alpha, scale_wide(sum.y, -down - back.y) * out.alpha,
                      scale_wide(sum.z, -down - back.z) * out.alpha, scale_wide(sum.w, -down - back.w) * out.alpha};
  float4 result{x[0], x[1], x[2], x[3]};
  if (out.beta != 0.0f) {
    const float4 old = out.addend.four(row, col, exist);
    result = {fmaf(out.beta, old.x, x[0]), fmaf(out.beta, old.y, x[1]), fmaf(out.beta, old.z, x[2]),
              fmaf(out.beta, old.w, x[3])};
  }
  write_vector(out.c + row * out.ldc + col, result, plan.by16, exist);
}

// Where the sums of a thread lie in its tile: vector v of four neighbours of a row. Rows in eights, columns in fours
// (SplitThreadMap puts neighbours into one lane).
template <class T>
struct MmaVectors {
  static constexpr int COUNT = T::MT * T::NT;
  static constexpr bool UNEVEN = COUNT % T::K_GROUPS != 0;  // the last group stores fewer than the others
  int row0, col0;
  __device__ __forceinline__ MmaVectors() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x % T::GROUP_THREADS / 32;
    row0 = warp / T::WARP_COLS * 16 * T::MT + lane / 4, col0 = warp % T::WARP_COLS * 8 * T::NT + lane % 4 * 4;
  }
  __device__ __forceinline__ int row(int v) const { return row0 + v % (2 * T::MT) * 8; }
  __device__ __forceinline__ int col(int v) const { return col0 + v / (2 * T::MT) * 16; }
  static __device__ __forceinline__ float4 of(const MmaSums<T>& sums, int v) {
    const int pair = v / (2 * T::MT), i = v % (2 * T::MT);
    const float(&left)[4] = sums[i / 2][2 * pair], (&right)[4] = sums[i / 2][2 * pair + 1];
    return {left[i % 2 * 2], left[i % 2 * 2 + 1], right[i % 2 * 2], right[i % 2 * 2 + 1]};
  }
};

// Stores `COUNT` vectors, of which get(i) is the i-th and at(i) its number. Nearly all tiles run the few instructions
// of the first branch alone.
template <class T, int COUNT, class At, class Get>
__device__ __forceinline__ void store_vectors(const MmaPlan& plan, const MmaTileOrigin& corner, const int* exponents,
                                              bool wide, At&& at, Get&& get) {
  const AccurateEpilogue& out = plan.out;
  const MmaVectors<T> vectors;
  const bool whole = corner.row + T::BM <= out.m && corner.col + T::BN <= out.n;
  auto across = [&](int v) { return *reinterpret_cast<const int4*>(exponents + T::BM + vectors.col(v)); };
  if (whole && plan.by16 && !wide && out.beta == 0.0f) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int v = at(i), row = vectors.row(v);
      if (MmaVectors<T>::UNEVEN && v >= MmaVectors<T>::COUNT) break;
      const int down = exponents[row];
      const int4 back = across(v);
      const float4 sum = get(i);
      auto result = [&](float x, int e)
                        __attribute__((always_inline)) { return x * power_of_two(-down - e) * out.alpha; };
      *reinterpret_cast<float4*>(out.c + (corner.row + row) * out.ldc + corner.col + vectors.col(v)) = {
          result(sum.x, back.x), result(sum.y, back.y), result(sum.z, back.z), result(sum.w, back.w)};
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const int v = at(i), row = vectors.row(v);
      if (MmaVectors<T>::UNEVEN && v >= MmaVectors<T>::COUNT) break;
      store_any(plan, corner.row + row, corner.col + vectors.col(v), get(i), exponents[row], across(v));
    }
  }
}

// Until at most so many of the last fills are on their way; those by way of registers are there with the next barrier.
template <class T, int LEFT>
__device__ __forceinline__ void wait_fills() {
  if constexpr (T::INSTRUCTIONS_OF_80) ptx::wait_copies<LEFT>();
}

// The sums of all groups through shared memory, added up in the order of the groups by whichever thread stores them.
template <class T>
__device__ __forceinline__ void store_groups(const MmaPlan& plan, const MmaSums<T>& sums, const MmaTileOrigin& corner,
                                             char* memory, bool wide) {
  constexpr int VECTORS = MmaVectors<T>::COUNT, SHARE = ceil_div(VECTORS, T::K_GROUPS);
  float4* const parts = reinterpret_cast<float4*>(memory) + threadIdx.x % T::GROUP_THREADS;
  const int group = threadIdx.x / T::GROUP_THREADS;
  wait_fills<T, 0>();
  __syncthreads();
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) parts[(group * VECTORS + v) * T::GROUP_THREADS] = MmaVectors<T>::of(sums, v);
  __syncthreads();
  store_vectors<T, SHARE>(
      plan, corner, reinterpret_cast<const int*>(memory + T::EXPONENTS), wide, [&](int i) { return group * SHARE + i; },
      [&](int i) {
        float4 sum = parts[(group * SHARE + i) * T::GROUP_THREADS];
#pragma unroll
        for (int g = 1; g < T::K_GROUPS; ++g) {
          const float4 part = parts[(g * VECTORS + group * SHARE + i) * T::GROUP_THREADS];
          sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        return sum;
      });
}

// The sums of a part of k, for the reduction behind (split_k.cuh). There is room for whole tiles.
template <class T>
__device__ __forceinline__ void store_part(const MmaPlan& plan, const MmaSums<T>& sums, const MmaTileOrigin& corner,
                                           int part) {
  const MmaVectors<T> vectors;
  float* const to = plan.to.sums + part * plan.to.apart + corner.row * plan.to.ld + corner.col;
#pragma unroll
  for (int v = 0; v < MmaVectors<T>::COUNT; ++v)
    *reinterpret_cast<float4*>(to + vectors.row(v) * plan.to.ld + vectors.col(v)) = MmaVectors<T>::of(sums, v);
}

template <class T>
__device__ __forceinline__ void group_barrier() {
  if constexpr (T::GROUP_THREADS == 32) __syncwarp();
  else if constexpr (T::K_GROUPS == 1) __syncthreads();
  else asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.x / T::GROUP_THREADS), "n"(T::GROUP_THREADS) : "memory");
}

// Where a lane reads its warp's first columns of B in a stage.
template <class T>
__device__ __forceinline__ uint32_t first_of_b(unsigned warp_col, unsigned lane) {
  const unsigned k = lane % 16, eight = warp_col * T::NT;
  if constexpr (T::STRIPS) return eight / 4 * T::STRIP_BYTES + k * 64 + (((eight % 4 + lane / 16) ^ k / 2 % 4) << 4);
  return eight / 8 * T::BK * 128 + k * 128 + (((eight % 8 + lane / 16) ^ k % 8) << 4);
}

template <class T, bool SPLIT_K>
__device__ __forceinline__ void multiply_tiles(const MmaPlan& plan, MmaProducer<T>& producer, char* memory) {
  const auto& status = reinterpret_cast<const RangeShared*>(memory + T::STATUS)->status;
  const int units = plan.tile_rows * plan.tile_cols * (SPLIT_K ? plan.to.parts : 1);
  const unsigned lane = threadIdx.x % 32, group = threadIdx.x / T::GROUP_THREADS,
                 warp = threadIdx.x % T::GROUP_THREADS / 32, row = warp / T::WARP_COLS, col = warp % T::WARP_COLS;
  constexpr uint32_t LAST = (T::STAGES - 1) * T::STAGE_BYTES;
  const uint32_t a_at =
      (row * 16 * T::MT + lane % 16) * T::BK * 2 + ((lane / 16 ^ (T::BK == 64 ? lane % 8 : lane / 2 % 4)) << 4);
  const uint32_t b_at = T::S::COUNT * T::A_TERM_BYTES + first_of_b<T>(col, lane);
  const uint32_t shared = ptx::shared_address(memory) + group * T::GROUP_BYTES;
  const uint32_t exponents = ptx::shared_address(memory + T::EXPONENTS);
  uint32_t stage = 0;
  MmaSums<T> sums;
  MmaFragments<T> fragments;
  wait_fills<T, T::STAGES - 1>();
  group_barrier<T>();
  for (int term = 0; term < T::S::COUNT; ++term) {
    fragments.load_a(term, shared + a_at);
    fragments.load_b(term, shared + b_at);
  }
  for (int at = int(blockIdx.x), buffer = 0; at < units; at += int(gridDim.x), buffer ^= 1) {
    const MmaUnit unit = unit_of<SPLIT_K>(plan, at);
#pragma unroll
    for (int i = 0; i < T::MT * T::NT * 4; ++i) sums[i / 4 / T::NT][i / 4 % T::NT][i % 4] = 0.0f;
    for (int left = (TERM_BLOCK / T::BK * unit.count - int(group) + T::K_GROUPS - 1) / T::K_GROUPS; left > 0; --left) {
      if (T::PERSISTENT && left == T::STAGES) {
        const int next = at + int(gridDim.x);
        producer.begin(exponents + (buffer ^ 1) * T::EXPONENT_BYTES, unit_of<SPLIT_K>(plan, next < units ? next : at));
      }
      const uint32_t next = stage == LAST ? 0 : stage + T::STAGE_BYTES;
      if constexpr (!T::INSTRUCTIONS_OF_80) producer.fill(shared + (stage == 0 ? LAST : stage - T::STAGE_BYTES));
      const auto next_stage = [&]() __attribute__((always_inline)) {
        wait_fills<T, T::STAGES - 2>();
        group_barrier<T>();
        if constexpr (!T::INSTRUCTIONS_OF_80) return;
        else if (T::PERSISTENT || left > T::STAGES) producer.fill(shared + stage);
        else ptx::commit_copies();
      };
      multiply_stage<T>(sums, fragments, shared + stage + a_at, shared + next + a_at, shared + next + b_at, next_stage);
      stage = next;
    }
    const MmaTileOrigin corner = rasterize<T>(plan, unit.tile);
    if constexpr (T::K_GROUPS > 1) return store_groups<T>(plan, sums, corner, memory, status & STATUS_WIDE);
    else if constexpr (SPLIT_K) store_part<T>(plan, sums, corner, unit.part);
    else
      store_vectors<T, MmaVectors<T>::COUNT>(
          plan, corner, reinterpret_cast<const int*>(memory + T::EXPONENTS + buffer * T::EXPONENT_BYTES),
          status & STATUS_WIDE, [](int i) { return i; }, [&](int i) { return MmaVectors<T>::of(sums, i); });
    if constexpr (!T::PERSISTENT) return;
  }
}

template <class T, bool SPLIT_K>
__device__ __forceinline__ void multiply_terms_of(const MmaPlan& plan, char* memory) {
  RangeShared& range = *reinterpret_cast<RangeShared*>(memory + T::STATUS);
  if (threadIdx.x == 0) range = {};
  __syncthreads();
  pdl_wait();
  if (!terms_wanted(plan.check)) {
    if constexpr (T::FALLS_BACK)
      if (plan.fallback.wanted && *plan.check.previous & STATUS_REJECTED) fall_back(plan.fallback, memory);
    return;
  }

  // The first copies take as long as the range check.
  MmaProducer<T> producer(plan);
  producer.begin(ptx::shared_address(memory + T::EXPONENTS), unit_of<SPLIT_K>(plan, int(blockIdx.x)));
  const uint32_t stages = ptx::shared_address(memory + threadIdx.x / T::GROUP_THREADS * T::GROUP_BYTES);
  if constexpr (!T::INSTRUCTIONS_OF_80) producer.template fill<true>(stages);
#pragma unroll
  for (int i = 0; i < T::STAGES - (T::INSTRUCTIONS_OF_80 ? 0 : 1); ++i) producer.fill(stages + i * T::STAGE_BYTES);
  reduce_range_words<0, T::THREADS>(plan.check, range);
  __syncthreads();
  const unsigned status = status_of(plan.check, range);
  if (threadIdx.x == 0) {
    range.status = status;  // for the stores: no register is free to keep it
    if (blockIdx.x == 0) *plan.check.status = status;
  }
  if (!(status & STATUS_REJECTED)) multiply_tiles<T, SPLIT_K>(plan, producer, memory);
  wait_fills<T, 0>();
  if constexpr (T::FALLS_BACK) {
    if (!(status & STATUS_REJECTED) || !plan.fallback.wanted) return;
    __syncthreads();
    fall_back(plan.fallback, memory);
  }
}

template <class T, bool SPLIT_K = false>
__global__ void __launch_bounds__(T::THREADS, T::RESIDENT) mma_sync_kernel(const __grid_constant__ MmaPlan plan) {
  extern __shared__ __align__(128) char memory[];  // nothing else is shared: what lies before it may not be aligned
#if __CUDA_ARCH__ >= 800
  multiply_terms_of<T, SPLIT_K>(plan, memory);
#else
  if constexpr (T::INSTRUCTIONS_OF_80) not_for_this_target();
  else multiply_terms_of<T, SPLIT_K>(plan, memory);
#endif
}

}  // namespace fl
