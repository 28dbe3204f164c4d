// What a thread of the split pass holds of an operand, for A and B in either layout: which numbers, how they are read and
// where they go. It is always the eight numbers of a 16-byte chunk of the slices, times four.
#pragma once

#include "launch.cuh"
#include "slices.cuh"

namespace fl {

// A "line" is a row of A or a column of B.
struct SplitOperand {
  const float* data;
  int64_t ld, lines;
  bool k_contiguous, by16;
  char* slices;
  int* exponents;  // line i was multiplied by 2^exponents[i]
};

constexpr int SPLIT_THREADS = 512, SPLIT_PIECE = SlicedBound::SPLIT_PIECE;

// Which 4 x 8 of 16 lines by 1024 k a thread holds: chunk g, number j. Lanes that differ in SHARED bits hold numbers of the
// same lines. The columns of B change places within groups of 16, so that a lane of the product's accumulator ends up
// with four neighbouring columns of C: chunk c of such a group holds columns 2c, 2c + 1, 2c + 4, 2c + 5, ...
template <bool IS_B, bool K_CONTIGUOUS>
struct SplitShare {
  static constexpr int LINES = IS_B ? 8 : K_CONTIGUOUS ? 1 : 4;
  static constexpr unsigned SHARED = IS_B ? 30 : K_CONTIGUOUS ? 31 : 28;
  unsigned t;
  static constexpr int index(int g, int j) { return IS_B ? j : LINES == 1 ? 0 : g; }  // of a number's line
  __device__ __forceinline__ unsigned line(int i) const {
    if constexpr (IS_B) return i / 2 * 4 + t % 2 * 2 + i % 2;
    return K_CONTIGUOUS ? t / 32 : t % 4 * 4 + i;
  }
  // Of chunk g; in a slice of A the eight numbers follow along k.
  __device__ __forceinline__ unsigned k(int g) const {
    if constexpr (IS_B) return K_CONTIGUOUS ? t / 2 * 4 + g : g * 256 + t / 2;
    return K_CONTIGUOUS ? (g * 32 + t % 32) * 8 : t / 4 * 8;
  }
  // Where chunk g goes in its block of 64 lines by 64 k, of which this is quarter `quarter`; `k` counts from the start of
  // the operand.
  __device__ __forceinline__ unsigned place(int g, int64_t k, unsigned quarter) const {
    const unsigned in_block = static_cast<unsigned>(k % 64);
    const unsigned row = IS_B ? in_block : quarter * 16 + line(g), column = IS_B ? quarter * 2 + t % 2 : in_block / 8;
    return row * 128 + ((column ^ row % 8) << 4);
  }
};

// V neighbours.
template <int V>
__device__ __forceinline__ void read_run(float (&run)[V], const float* from) {
  if constexpr (V == 4) {
    const float4 x = __ldg(reinterpret_cast<const float4*>(from));
    run[0] = x.x, run[1] = x.y, run[2] = x.z, run[3] = x.w;
  } else {
    const float2 x = __ldg(reinterpret_cast<const float2*>(from));
    run[0] = x.x, run[1] = x.y;
  }
}
// Those of them that exist, zeros for the rest.
template <int V>
__device__ __forceinline__ void read_run(float (&run)[V], const float* from, int64_t exist) {
#pragma unroll
  for (int i = 0; i < V; ++i) run[i] = i < exist ? __ldg(from + i) : 0.0f;
}

// The numbers of a thread from line0 and k0 on. WHOLE: all of them exist and are aligned; a branch for every read instead
// keeps the reads from being issued together.
template <bool WHOLE, bool IS_B, bool K_CONTIGUOUS>
__device__ __forceinline__ void read_piece(float (&v)[4][8], const SplitOperand& x,
                                           const SplitShare<IS_B, K_CONTIGUOUS>& at, int64_t line0, int64_t k0,
                                           int64_t k_end) {
  constexpr int V = IS_B && !K_CONTIGUOUS ? 2 : 4;
  // A run starts `lines` and `ks` from the first number of the thread.
  auto run = [&](float(&to)[V], int lines, int ks) __attribute__((always_inline)) {
    const int64_t line = line0 + at.line(0), k = k0 + at.k(0);
    const float* const first = x.data + (K_CONTIGUOUS ? line * x.ld + k : k * x.ld + line);
    const float* const from = first + (K_CONTIGUOUS ? lines * x.ld + ks : ks * x.ld + lines);
    if constexpr (WHOLE) {
      read_run(to, from);
    } else {
      const int64_t lines_left = x.lines - line - lines, k_left = k_end - k - ks;
      read_run(to, from, K_CONTIGUOUS ? (lines_left > 0 ? k_left : 0) : (k_left > 0 ? lines_left : 0));
    }
  };
  if constexpr (K_CONTIGUOUS != IS_B) {  // a chunk's numbers are neighbours, or pairs of neighbours
#pragma unroll
    for (int g = 0; g < 4; ++g)
#pragma unroll
      for (int j = 0; j < 8; j += V) {
        float some[V];
        if constexpr (IS_B) run(some, j / 2 * 4, g * 256);
        else run(some, 0, g * 256 + j);
#pragma unroll
        for (int i = 0; i < V; ++i) v[g][j + i] = some[i];
      }
  } else {  // the same number of the four chunks are neighbours
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float some[4];
      if constexpr (IS_B) run(some, j / 2 * 4 + j % 2, 0);
      else run(some, 0, j);
#pragma unroll
      for (int g = 0; g < 4; ++g) v[g][j] = some[g];
    }
  }
}

}  // namespace fl
