// A tile as the kernels of multistage.cuh see it, and a thread's sums over its group's share of each step along k.
#pragma once

#include <utility>

#include "cuda/kernels/sgemm_strict/register_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict/multistage_plan.h"

namespace fl {

// Whether code for this target knows asynchronous copies.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool target_copies_async = false;
#else
constexpr bool target_copies_async = true;
#endif

template <MultistageTile TILE, bool ASYNCHRONOUS = true>
struct Multistage {
  static_assert(TILE.sound() && (ASYNCHRONOUS || TILE.any_gpu));
  static constexpr bool SLICES = TILE.slices(), SPREAD = TILE.spread() && ASYNCHRONOUS;
  static constexpr bool ONE_BUFFER = TILE.one_buffer && ASYNCHRONOUS;
  static constexpr bool ASYNC = ASYNCHRONOUS && target_copies_async, RUNS_HERE = ASYNC == ASYNCHRONOUS;
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM, TN = TILE.TN;
  static constexpr int K_GROUPS = TILE.k_groups, STAGES = TILE.stages, LINES = BK / K_GROUPS;  // of a step for a group
  // Registers hold what is under way, and leave room for fewer blocks.
  static constexpr int BY_REGISTERS = SLICES ? 1 : TM * TN < 64 || TILE.threads() == 256 ? 512 / TILE.threads() : 3;
  static constexpr int BLOCKS = !ASYNC                         ? BY_REGISTERS
                                : SPREAD && code_for<100, 120> ? TILE.blocks - 1  // more would spill
                                                               : TILE.blocks;
  static constexpr int WARPS_N = TILE.warps_n(), GROUP_THREADS = TILE.group_threads(), THREADS = TILE.threads();
  static constexpr int A_LD = padded_row(SLICES ? BK : BM), B_LD = padded_row(BN), A_BYTES = TILE.a_bytes();
  static constexpr int STAGE_BYTES = TILE.stage_bytes(), PIPELINE_BYTES = TILE.pipeline_bytes();
  static constexpr int SUMS_ROWS = TILE.sums_rows(ASYNCHRONOUS), SUMS_BYTES = TILE.sums_bytes(ASYNCHRONOUS),
                       SHARED_BYTES = TILE.shared_bytes(ASYNCHRONOUS);

  template <int ROWS, int LENGTH, Tail TAIL>
  using Copy = std::conditional_t<ASYNC, TileCopy<ROWS, LENGTH, THREADS, TAIL, SLICES ? 1 : 4>,
                                  RegisterCopy<ROWS, LENGTH, THREADS, !SLICES>>;
  using CopyA = std::conditional_t<SLICES, Copy<BM, BK, Tail::of_columns>, Copy<BK, BM, Tail::none>>;
  using CopyB = Copy<BK, BN, SLICES ? Tail::of_lines : Tail::none>;

  // How far below its first row a thread's row i lies: rows come in fours, or every eighth is its own.
  static constexpr int down(int i) { return SLICES ? i * 8 : i / 4 * 32 + i % 4; }
};

// Every k_groups-th line of a step, with m contiguous in A. The fragments of the next line are loaded while this one is
// multiplied: into a second buffer, or into the first one as its registers fall free, as in mainloop.cuh, where two
// have no room.
template <class T>
struct LineSums {
  static constexpr int A_STEP = T::K_GROUPS * T::A_LD * 4, B_STEP = T::K_GROUPS * T::B_LD * 4;  // between its lines
  float acc[T::TM][T::TN] = {};
  float a_frag[T::ONE_BUFFER ? 1 : 2][T::TM], b_frag[T::ONE_BUFFER ? 1 : 2][T::TN];

  // Where in a stage a group's first line begins, for a thread whose outputs begin there in the tile.
  static __device__ __forceinline__ int a_offset(int group, int row) { return (group * T::A_LD + row) * 4; }
  static __device__ __forceinline__ int b_offset(int group, int col) {
    return T::A_BYTES + (group * T::B_LD + col) * 4;
  }

  __device__ __forceinline__ void load(int to, uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) unpack(&a_frag[to][i], ptx::load4(a + i * 32));
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[to][j], ptx::load4(b + j * 16));
  }
  __device__ __forceinline__ void add_product(int of) { outer_product(acc, a_frag[of], b_frag[of]); }
  __device__ __forceinline__ void add_product_and_load(uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
      const bool last = i + 1 == T::TM;
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 && !last ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(a_frag[0][i], b_frag[0][j], acc[i][j]);
        if (last && j % 4 == 3) unpack(&b_frag[0][j - 3], ptx::load4(b + (j - 3) * 16));
      }
      if (i % 4 == 3) unpack(&a_frag[0][i - 3], ptx::load4(a + (i - 3) * 32));
    }
  }
  // The product of line `line` of a step, while the fragments at a and b arrive; copy() begins copies between.
  template <class Copy>
  __device__ __forceinline__ void line(int line, uint32_t a, uint32_t b, const Copy& copy) {
    if constexpr (T::ONE_BUFFER) {
      add_product_and_load(a, b);
      copy();
    } else {
      load((line + 1) % 2, a, b);
      copy();
      add_product(line % 2);
    }
  }
  // The group's lines of a last step that is not whole, of which the first is in the fragments.
  __device__ __forceinline__ void last_lines(uint32_t a, uint32_t b, int left, int group) {
    const int lines = (left - group + T::K_GROUPS - 1) / T::K_GROUPS;
#pragma unroll 1
    for (int l = 1; l <= lines; ++l) {
      if (l < lines) a += A_STEP, b += B_STEP;  // behind the last line the shared memory may end
      if constexpr (T::ONE_BUFFER) {
        add_product_and_load(a, b);
      } else {
        load(1, a, b);
        add_product(0);
#pragma unroll
        for (int i = 0; i < T::TM; ++i) a_frag[0][i] = a_frag[1][i];
#pragma unroll
        for (int j = 0; j < T::TN; ++j) b_frag[0][j] = b_frag[1][j];
      }
    }
  }
  // The group's lines of a step that is not whole.
  __device__ __forceinline__ void rest(uint32_t a, uint32_t b, int left, int group) {
    const int lines = (left - group + T::K_GROUPS - 1) / T::K_GROUPS;
#pragma unroll 1
    for (int l = 0; l < lines; ++l) {
      load(0, a + l * A_STEP, b + l * B_STEP);
      add_product(0);
    }
  }
  // The group's lines of a step, of which `left` k exist.
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b, int left, int group) {
    if ((left - group + T::K_GROUPS - 1) / T::K_GROUPS < T::LINES) return rest(a, b, left, group);
    load(0, a, b);
#pragma unroll
    for (int l = 0; l < T::LINES; ++l) {
      if (l + 1 < T::LINES) load((l + 1) % 2, a + (l + 1) * A_STEP, b + (l + 1) * B_STEP);
      add_product(l % 2);
    }
  }
};

// Neighbouring lines of a step, with k contiguous in A. Rows of A come in fours of k, reloaded one by one with the last
// FMA that needs them.
template <class T>
struct SliceSums {
  static constexpr int A_PITCH = T::A_LD * 4, B_PITCH = T::B_LD * 4;
  float acc[T::TM][T::TN] = {};

  static __device__ __forceinline__ int a_offset(int group, int row) { return row * A_PITCH + group * T::LINES * 4; }
  static __device__ __forceinline__ int b_offset(int group, int col) {
    return T::A_BYTES + group * T::LINES * B_PITCH + col * 4;
  }

  static __device__ __forceinline__ void load_b(float (&b)[T::TN], uint32_t from) {
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b[j], ptx::load4(from + j * 16));
  }
  // What does not exist of a step has been filled in.
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b, int, int) {
    float4 a_rows[T::TM];
    float b_frag[2][T::TN];
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a_rows[i] = ptx::load4(a + i * 8 * A_PITCH);
    load_b(b_frag[0], b);
#pragma unroll
    for (int l = 0; l < T::LINES; ++l) {
      if (l + 1 < T::LINES) load_b(b_frag[(l + 1) % 2], b + (l + 1) * B_PITCH);
#pragma unroll
      for (int i = 0; i < T::TM; ++i) {
        const float a_frag = component(a_rows[i], l % 4);
#pragma unroll
        for (int step = 0; step < T::TN; ++step) {
          const int j = i % 2 ? T::TN - 1 - step : step;
          acc[i][j] = fmaf(a_frag, b_frag[l % 2][j], acc[i][j]);
        }
        if (l % 4 == 3 && l + 1 < T::LINES) a_rows[i] = ptx::load4(a + i * 8 * A_PITCH + (l + 1) * 4);
      }
    }
  }
};

template <class T>
using MultistageSums = std::conditional_t<T::SLICES, SliceSums<T>, LineSums<T>>;

}  // namespace fl
