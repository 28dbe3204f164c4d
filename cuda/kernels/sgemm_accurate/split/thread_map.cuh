// Which numbers a thread of the split pass holds, how it reads them, and sums over the threads that share a line.
//
// The eight numbers of a 16-byte chunk of the terms, times CHUNKS, or, where k is not contiguous in B, as many pairs of
// columns: eight threads then read a row of 16 columns together. Two that read it as halves of chunks took half as long
// again (B is the slower one): what counts is the lines of memory an access touches. Where k is contiguous in B and its
// blocks are UNSWIZZLED, a chunk has one k, so that the stores of sixteen threads follow each other: 7.2 us at 1536,
// with four k to a thread 12.0.
#pragma once

#include <type_traits>

#include "cuda/kernels/common/halves.cuh"
#include "cuda/kernels/sgemm_accurate/terms.cuh"
#include "plan/accurate/range_bound.h"

namespace fl {

// A "line" is a row of A or a column of B.
struct SplitOperand {
  const void* data;  // float32, or 16 bits
  int64_t ld, lines;
  bool k_contiguous, by16;
  bool in_16_bits, bfloat;
  bool one_term;    // the others are zero and not read
  unsigned* words;  // of the range check, one for each 16 lines
  char* terms;
  int* exponents;  // line i was multiplied by 2^exponents[i]
};

// A block of THREADS with CHUNKS chunks each takes 16 lines by PIECE k at a time.
template <int THREADS_, int CHUNKS_>
struct SplitShape {
  static constexpr int THREADS = THREADS_, CHUNKS = CHUNKS_, PIECE = THREADS * CHUNKS / 2;
};
using ShortSplit = SplitShape<512, 4>;
using LongSplit = SplitShape<256, 4>;
// For few lines: four chunks of three terms do not fit the 64 registers of a thread (8.1 us instead of 6.6 at 1024).
using WideSplit = SplitShape<1024, 2>;
static_assert(LongSplit::PIECE == SPLIT_PIECE, "the plan counts segments of k in pieces of this kernel");
static_assert(ShortSplit::PIECE == RangeBound::ONE_PIECE, "a block holds all k of short lines");
static_assert(WideSplit::PIECE == RangeBound::ONE_PIECE, "a block holds all k of short lines");

// Which of 16 lines by PIECE k a thread holds: chunk g, number j. Lanes that differ in SHARED bits hold numbers of the
// same lines. The columns of B change places within groups of 16, so that a lane of the product's accumulator ends up
// with four neighbouring columns of C: chunk c of such a group holds columns 2c, 2c + 1, 2c + 4, 2c + 5, ...
template <class Shape, bool IS_B, bool K_CONTIGUOUS, bool UNSWIZZLED>
struct SplitThreadMap {
  static constexpr unsigned THREADS = Shape::THREADS, CHUNKS = Shape::CHUNKS;
  static constexpr unsigned ALONG = THREADS / 16, ACROSS = 16 / CHUNKS;  // threads along a line of A, across its lines
  static constexpr bool PAIRS = IS_B && !K_CONTIGUOUS;
  static constexpr int LINES = PAIRS ? 2 : IS_B ? 8 : K_CONTIGUOUS ? 1 : CHUNKS;
  static constexpr unsigned SHARED = PAIRS ? 24 : IS_B ? 30 : K_CONTIGUOUS ? (ALONG - 1) & 31 : 32 - ACROSS;
  unsigned t;
  // Those of 16 bits are read in runs of V that are neighbours in memory: how many lines and k run r begins behind the
  // first, and which number its i-th is, chunk times eight plus j.
  static constexpr bool ALONG_K = K_CONTIGUOUS, ONE_K = IS_B && K_CONTIGUOUS && UNSWIZZLED;  // of each chunk
  static constexpr int V = ONE_K ? 1 : K_CONTIGUOUS == IS_B ? CHUNKS : IS_B ? 2 : 4, RUNS = CHUNKS * 8 / V;
  static constexpr int lines_before(int r) {
    const int j = ONE_K ? r / int(CHUNKS) : r;
    return IS_B && K_CONTIGUOUS ? j / 2 * 4 + j % 2 : 0;
  }
  static constexpr int ks_before(int r) {
    if (PAIRS) return r * int(THREADS / 8);
    if (IS_B) return ONE_K ? r % int(CHUNKS) * int(THREADS / 2) : 0;
    return K_CONTIGUOUS ? r / 2 * int(ALONG * 8) + r % 2 * 4 : r;
  }
  static constexpr int number(int r, int i) {
    if (ONE_K) return r % int(CHUNKS) * 8 + r / int(CHUNKS);
    return V == int(CHUNKS) && K_CONTIGUOUS == IS_B ? i * 8 + r : r * V + i;
  }
  static constexpr int index(int g, int j) { return PAIRS ? j % 2 : IS_B ? j : LINES == 1 ? 0 : g; }  // of a line
  __device__ __forceinline__ unsigned line(int i) const {
    if constexpr (PAIRS) return t % 8 * 2 + i;
    if constexpr (IS_B) return i / 2 * 4 + t % 2 * 2 + i % 2;
    return K_CONTIGUOUS ? t / ALONG : t % ACROSS * CHUNKS + i;
  }
  // Of chunk g; in a term of A the eight numbers follow along k.
  __device__ __forceinline__ unsigned k(int g) const {
    if constexpr (IS_B) return UNSWIZZLED ? g * (THREADS / 2) + t / 2 : t / 2 * CHUNKS + g;
    return K_CONTIGUOUS ? (g * ALONG + t % ALONG) * 8 : t / ACROSS * 8;
  }
  __device__ __forceinline__ unsigned k_of_pair(int i) const { return i * (THREADS / 8) + t / 8; }
  // Where chunk g goes in its block of 64 lines by 64 k, of which this is quarter `quarter`.
  __device__ __forceinline__ unsigned offset(int g, unsigned quarter) const {
    const unsigned in_block = k(g) % 64;
    const unsigned row = IS_B ? in_block : quarter * 16 + line(g), column = IS_B ? quarter * 2 + t % 2 : in_block / 8;
    return row * 128 + ((column ^ row % 8) << 4);
  }
  __device__ __forceinline__ unsigned offset_of_pair(int i, unsigned quarter) const {
    const unsigned row = k_of_pair(i) % 64, column = quarter * 2 + t % 2;
    return row * 128 + ((column ^ row % 8) << 4) + t % 8 / 2 * 4;
  }
  // The same in an unswizzled block of B: a row of k has 16 bytes of the eight columns `eight`, eight such rows follow.
  __device__ __forceinline__ unsigned offset_unswizzled(int g, unsigned eight) const {
    return eight * 1024 + k(g) % 64 * 16;
  }
  __device__ __forceinline__ unsigned offset_of_pair_unswizzled(int i, unsigned eight) const {
    return eight * 1024 + k_of_pair(i) % 64 * 16 + t % 8 / 2 * 4;
  }
};

// V neighbours.
template <int V>
__device__ __forceinline__ void read_run(float (&run)[V], const float* from) {
  if constexpr (V == 4) {
    const float4 x = __ldg(reinterpret_cast<const float4*>(from));
    run[0] = x.x, run[1] = x.y, run[2] = x.z, run[3] = x.w;
  } else if constexpr (V == 1) {
    run[0] = __ldg(from);
  } else {
    const float2 x = __ldg(reinterpret_cast<const float2*>(from));
    run[0] = x.x, run[1] = x.y;
  }
}
// Those of them that exist, zeros for the rest.
template <int V>
__device__ __forceinline__ void read_run(float (&run)[V], const float* from, int exist) {
#pragma unroll
  for (int i = 0; i < V; ++i) run[i] = i < exist ? __ldg(from + i) : 0.0f;
}

// How many exist, in 32 bits: more than a piece has lines or k are as good as that many.
__device__ __forceinline__ int up_to_limit(int64_t count) { return static_cast<int>(count < 4096 ? count : 4096); }

// The numbers of a thread from line0 and k0 on. FULL: all of them exist and are aligned; a branch for every read
// instead keeps the reads from being issued together. Not by lines_before() and its like, as 16 bits are: then calls
// take 1 to 3 % longer.
template <bool FULL, class Shape, bool IS_B, bool K_CONTIGUOUS, bool UNSWIZZLED>
__device__ __forceinline__ void read_piece(float (&v)[Shape::CHUNKS][8], const SplitOperand& x,
                                           const SplitThreadMap<Shape, IS_B, K_CONTIGUOUS, UNSWIZZLED>& at,
                                           int64_t line0, int64_t k0, int64_t k_end) {
  using At = SplitThreadMap<Shape, IS_B, K_CONTIGUOUS, UNSWIZZLED>;
  constexpr int CHUNKS = Shape::CHUNKS, V = At::V;
  // A run starts `lines` and `ks` from the first number of the thread.
  auto run = [&](float(&to)[V], int lines, int ks) __attribute__((always_inline)) {
    float got[V];
    const int64_t line = line0 + at.line(0), k = k0 + (At::PAIRS ? at.k_of_pair(0) : at.k(0));
    const float* const first = static_cast<const float*>(x.data) + (K_CONTIGUOUS ? line * x.ld + k : k * x.ld + line);
    const float* const from = first + (K_CONTIGUOUS ? lines * x.ld + ks : ks * x.ld + lines);
    if constexpr (FULL) {
      read_run(got, from);
    } else {
      const int lines_left = up_to_limit(x.lines - line) - lines, k_left = up_to_limit(k_end - k) - ks;
      read_run(got, from, K_CONTIGUOUS ? (lines_left > 0 ? k_left : 0) : (k_left > 0 ? lines_left : 0));
    }
#pragma unroll
    for (int i = 0; i < V; ++i) to[i] = got[i];
  };
  if constexpr (At::PAIRS) {
#pragma unroll
    for (int i = 0; i < CHUNKS * 4; ++i) {
      float some[2];
      run(some, 0, i * (Shape::THREADS / 8));
      v[i / 4][i % 4 * 2] = some[0], v[i / 4][i % 4 * 2 + 1] = some[1];
    }
  } else if constexpr (!IS_B && K_CONTIGUOUS) {  // a chunk's numbers are neighbours
#pragma unroll
    for (int g = 0; g < CHUNKS; ++g)
#pragma unroll
      for (int j = 0; j < 8; j += V) {
        float some[V];
        run(some, 0, static_cast<int>(at.k(g) - at.k(0)) + j);
#pragma unroll
        for (int i = 0; i < V; ++i) v[g][j + i] = some[i];
      }
  } else if constexpr (At::ONE_K) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int g = 0; g < CHUNKS; ++g) {
        float some[1];
        run(some, j / 2 * 4 + j % 2, g * (Shape::THREADS / 2));
        v[g][j] = some[0];
      }
  } else {  // the same number of all chunks are neighbours
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float some[V];
      if constexpr (IS_B) run(some, j / 2 * 4 + j % 2, 0);
      else run(some, 0, j);
#pragma unroll
      for (int g = 0; g < CHUNKS; ++g) v[g][j] = some[g];
    }
  }
}

// V neighbours in 16 bits, as they lie in memory.
template <int V>
struct HalvesRun {
  static constexpr int WORDS = V == 4 ? 2 : 1;
  unsigned words[WORDS];
  // They are not converted before: a conversion waits for what it converts.
  __device__ __forceinline__ void arrived() {
#pragma unroll
    for (unsigned& word : words) asm volatile("" : "+r"(word));
  }
  __device__ __forceinline__ float number(int i, bool bfloat) const {
    return widened(static_cast<uint16_t>(words[i / 2] >> i % 2 * 16), bfloat);
  }
  __device__ __forceinline__ void read(const uint16_t* from) {
    if constexpr (V == 4) {
      const uint2 word = __ldg(reinterpret_cast<const uint2*>(from));
      words[0] = word.x, words[1] = word.y;
    } else {
      words[0] = __ldg(reinterpret_cast<const std::conditional_t<V == 2, unsigned, uint16_t>*>(from));
    }
  }
  __device__ __forceinline__ void read(const uint16_t* from, int exist) {
#pragma unroll
    for (unsigned& word : words) word = 0;
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (i < exist) words[i / 2] |= unsigned{__ldg(from + i)} << i % 2 * 16;
  }
};

// The same in 16 bits, by calls of put(r, run). They are not floats yet, so that they can be on their way for long.
template <bool FULL, class At, class Put>
__device__ __forceinline__ void read_halves(const SplitOperand& x, const At& at, int64_t line0, int64_t k0,
                                            int64_t k_end, Put&& put) {
#pragma unroll
  for (int r = 0; r < At::RUNS; ++r) {
    const int64_t line = line0 + at.line(0), k = k0 + (At::PAIRS ? at.k_of_pair(0) : at.k(0));
    const int lines = At::lines_before(r), ks = At::ks_before(r);
    const uint16_t* const first =
        static_cast<const uint16_t*>(x.data) + (At::ALONG_K ? line * x.ld + k : k * x.ld + line);
    const uint16_t* const from = first + (At::ALONG_K ? lines * x.ld + ks : ks * x.ld + lines);
    HalvesRun<At::V> run;
    if constexpr (FULL) {
      run.read(from);
    } else {
      const int lines_left = up_to_limit(x.lines - line) - lines, k_left = up_to_limit(k_end - k) - ks;
      run.read(from, At::ALONG_K ? (lines_left > 0 ? k_left : 0) : (k_left > 0 ? lines_left : 0));
    }
    put(r, run);
  }
}

// Reduces x[i] over the lanes that hold line i, all lines at once: while there are several, lanes exchange halves. The
// result is for line `line`; lanes that differ in the bits returned have the same.
template <unsigned SHARED, int LINES, class Op>
__device__ __forceinline__ unsigned reduce_lines(unsigned (&x)[LINES], int& line, Op op) {
  int left = LINES;
  unsigned same = 0;
  line = 0;
#pragma unroll
  for (unsigned bit = 1; bit < 32; bit *= 2) {
    if (!(SHARED & bit)) continue;
    if (left > 1) {
      left /= 2;
      const bool upper = threadIdx.x & bit;
#pragma unroll
      for (int i = 0; i < LINES / 2; ++i) {
        if (i >= left) break;
        const unsigned keep = upper ? x[i + left] : x[i], give = upper ? x[i] : x[i + left];
        x[i] = op(keep, __shfl_xor_sync(0xffffffffu, give, bit));
      }
      line += upper ? left : 0;
    } else {
      x[0] = op(x[0], __shfl_xor_sync(0xffffffffu, x[0], bit));
      same |= bit;
    }
  }
  return same;
}

}  // namespace fl
