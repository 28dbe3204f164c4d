// The split pass: every row of A and every column of B, a "line" here, is scaled by a power of two and split into terms
// of 16 bits, in the order and swizzle that the tensor cores read. So the product needs no tensor maps, and whatever
// layout, alignment or transposition the operands have ends here.
//
// A block takes 16 lines, 32 numbers per thread at a time. All four combinations of operand and layout run the same
// code; they differ in which 32 numbers a thread holds (SplitThreadMap).
//
// The operand is read once. Up to k = 1024 the first piece of k is all there is. Beyond that the scale comes from the
// first piece, with a factor 16 of headroom; the true maximum is known at the end, and 16 lines of which one has left
// the range are read and written again. Two passes instead cost 19 % more at 8192.
//
// For the range check (range_check.cuh) one word for 16 lines says how many numbers of the worst line are not large,
// whether there are any so small that the terms cannot hold them, and NaN or Inf.
//
// Clusters of eight blocks that share 64 lines, which this replaces, took 12.5 us for 10.3 at 2048 and 26 for 23 at
// 4096, k = 1024, but 276 for 350 at k = 8192: there one block of a multiprocessor does not keep memory busy.
//
// Few lines that are long: segments of their k go to blocks of their own. One block for each 16 lines takes 2.05 us for
// each 512 k of them, which is 262 us at k = 65536 however few there are. The block of every segment guesses the scales
// from the first piece of its lines, as one block for all of k does, and leaves on record what it has found. A second
// launch reads the records and writes the range words. Where a guess has failed its blocks write their segments again,
// count anew, and the last one writes the word. So terms, exponents and words are those of one block for each 16 lines,
// to the bit.
#pragma once

#include <type_traits>

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"

namespace fl {

// ---------------------------------------------------------------- which numbers a thread holds
// The eight numbers of a 16-byte chunk of the terms, times CHUNKS, or, where k is not contiguous in B, as many pairs of
// columns: eight threads then read a row of 16 columns together. Two that read it as halves of chunks took half as long
// again (B is the slower one): what counts is the lines of memory an access touches. Where k is contiguous in B and its
// blocks are UNSWIZZLED, a chunk has one k, so that the stores of sixteen threads follow each other: 7.2 us for 12.0 at
// 1536 with four k to a thread.

// A "line" is a row of A or a column of B.
struct SplitOperand {
  const float* data;
  int64_t ld, lines;
  bool k_contiguous, by16;
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
// For three terms of few lines: four chunks of them do not fit the 64 registers of a thread (8.1 us for 6.6 at 1024).
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
  __device__ __forceinline__ unsigned place(int g, unsigned quarter) const {
    const unsigned in_block = k(g) % 64;
    const unsigned row = IS_B ? in_block : quarter * 16 + line(g), column = IS_B ? quarter * 2 + t % 2 : in_block / 8;
    return row * 128 + ((column ^ row % 8) << 4);
  }
  __device__ __forceinline__ unsigned place_of_pair(int i, unsigned quarter) const {
    const unsigned row = k_of_pair(i) % 64, column = quarter * 2 + t % 2;
    return row * 128 + ((column ^ row % 8) << 4) + t % 8 / 2 * 4;
  }
  // The same in an unswizzled block of B: a row of k has 16 bytes of the eight columns `eight`, eight such rows follow.
  __device__ __forceinline__ unsigned place_unswizzled(int g, unsigned eight) const {
    return eight * 1024 + k(g) % 64 * 16;
  }
  __device__ __forceinline__ unsigned place_of_pair_unswizzled(int i, unsigned eight) const {
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

// The numbers of a thread from line0 and k0 on. WHOLE: all of them exist and are aligned; a branch for every read
// instead keeps the reads from being issued together.
template <bool WHOLE, class Shape, bool IS_B, bool K_CONTIGUOUS, bool UNSWIZZLED>
__device__ __forceinline__ void read_piece(float (&v)[Shape::CHUNKS][8], const SplitOperand& x,
                                           const SplitThreadMap<Shape, IS_B, K_CONTIGUOUS, UNSWIZZLED>& at,
                                           int64_t line0, int64_t k0, int64_t k_end) {
  using At = SplitThreadMap<Shape, IS_B, K_CONTIGUOUS, UNSWIZZLED>;
  constexpr bool ONE_K = IS_B && K_CONTIGUOUS && UNSWIZZLED;  // of each chunk
  constexpr int CHUNKS = Shape::CHUNKS, V = ONE_K ? 1 : K_CONTIGUOUS == IS_B ? CHUNKS : IS_B ? 2 : 4;
  // A run starts `lines` and `ks` from the first number of the thread.
  auto run = [&](float(&to)[V], int lines, int ks) __attribute__((always_inline)) {
    const int64_t line = line0 + at.line(0), k = k0 + (At::PAIRS ? at.k_of_pair(0) : at.k(0));
    const float* const first = x.data + (K_CONTIGUOUS ? line * x.ld + k : k * x.ld + line);
    const float* const from = first + (K_CONTIGUOUS ? lines * x.ld + ks : ks * x.ld + lines);
    if constexpr (WHOLE) {
      read_run(to, from);
    } else {
      const int lines_left = up_to_limit(x.lines - line) - lines, k_left = up_to_limit(k_end - k) - ks;
      read_run(to, from, K_CONTIGUOUS ? (lines_left > 0 ? k_left : 0) : (k_left > 0 ? lines_left : 0));
    }
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
  } else if constexpr (ONE_K) {
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

// ---------------------------------------------------------------- what a block does with its 16 lines
struct SplitPlan {
  SplitOperand a, b;
  int64_t k, k_blocks;
  unsigned a_groups, groups;  // of 16 lines: those of A, then those of B; none of a prepacked operand
  unsigned b_panel;           // groups of a panel of B
  float small, large;         // thresholds on scaled numbers
  bool early;                 // whether the product's blocks may start as soon as there is room, or by the end
  const unsigned* previous;   // the status of the terms that were tried before these, if any
};

struct SplitShared {
  unsigned largest[2][SPLIT_LINES], large_count[SPLIT_LINES], low;
  // For each warp, so that no other has to be waited for: what would take registers where numbers need them all.
  unsigned block[32];                        // the group of lines
  alignas(16) float scale[32][SPLIT_LINES];  // of its lines, read in pairs

  __device__ __forceinline__ unsigned kept_block() const {
    return *static_cast<const volatile unsigned*>(&block[ptx::thread_index() / 32]);
  }
};

__device__ __forceinline__ void clear(SplitShared& shared, unsigned block) {
  const unsigned t = ptx::thread_index();
  __syncwarp();
  if (t % 32 == 0) shared.block[t / 32] = block;
  if (t == 0) shared.low = 0;
  if (t < SPLIT_LINES) shared.largest[0][t] = shared.largest[1][t] = shared.large_count[t] = 0;
  __syncthreads();
}

__device__ __forceinline__ bool split_wanted(const SplitPlan& plan) {
  return !plan.previous || out_of_range(*plan.previous);
}

// By the first warp of a block: lane i knows all about line i, which was multiplied by 2^e.
__device__ __forceinline__ void report_lines(const SplitPlan& plan, const SplitOperand& x, unsigned group,
                                             unsigned largest, unsigned large_count, int e, unsigned flags) {
  const unsigned lane = threadIdx.x;
  const int64_t line0 = int64_t{group} * SPLIT_LINES;
  unsigned not_large = 0;
  if (lane < SPLIT_LINES && line0 + lane < x.lines) {
    if (largest != 0) {
      if (largest >= 0xff000000u) flags |= RANGE_NOT_FINITE;
      if (abs(e) > NARROW) flags |= RANGE_WIDE;
      not_large = static_cast<unsigned>(plan.k) - large_count;
    }
    x.exponents[line0 + lane] = e;
  }
  not_large = ptx::warp_max(not_large);
  flags = ptx::warp_or(flags);
  if (lane == 0) x.words[group] = flags | min(not_large, RANGE_COUNT);
}

// UNSWIZZLED: panels of B of another width than 64 columns.
template <class S, class Shape, bool IS_B, bool K_CONTIGUOUS, bool UNSWIZZLED>
struct LineSplitter {
  using Map = SplitThreadMap<Shape, IS_B, K_CONTIGUOUS, UNSWIZZLED>;
  static constexpr int CHUNKS = Shape::CHUNKS, PIECE = Shape::PIECE, LINES = Map::LINES, HEADROOM = 4;
  static constexpr int COUNTS = IS_B ? LINES / 2 : LINES;
  using Numbers = float[CHUNKS][8];

  const SplitPlan& plan;
  const SplitOperand& x;
  SplitShared& shared;

  Numbers v;
  unsigned own[LINES] = {}, smallest = ~0u;  // of magnitudes' bits times 2; minus 1, so that zero is the largest
  unsigned large_count[COUNTS] = {};         // two 16-bit counters in one
  unsigned low = 0;                          // bits of the low terms

  __device__ __forceinline__ LineSplitter(const SplitPlan& plan, const SplitOperand& x, SplitShared& shared)
      : plan(plan), x(x), shared(shared) {}

  static __device__ __forceinline__ Map map() {
    const Map at{ptx::thread_index()};
    __builtin_assume(at.t < Shape::THREADS);
    return at;
  }

  // Which 16 lines of the operand these are. Asked for where it is needed, and not kept in a register meanwhile.
  __device__ __forceinline__ unsigned group() const { return shared.kept_block() - (IS_B ? plan.a_groups : 0); }

  __device__ __forceinline__ void read(Numbers& to, int piece) const {
    const int64_t from = int64_t{piece} * PIECE, line0 = int64_t{group()} * SPLIT_LINES;
    const Map at = map();
    if (x.by16 && line0 + SPLIT_LINES <= x.lines && from + PIECE <= plan.k)
      read_piece<true>(to, x, at, line0, from, plan.k);
    else read_piece<false>(to, x, at, line0, from, plan.k);
  }

  __device__ __forceinline__ void take(const Numbers& next) {
#pragma unroll
    for (int i = 0; i < CHUNKS * 8; ++i) v[i / 8][i % 8] = next[i / 8][i % 8];
  }

  __device__ __forceinline__ void measure() {
#pragma unroll
    for (int g = 0; g < CHUNKS; ++g)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const unsigned doubled = __float_as_uint(v[g][j]) << 1;
        own[Map::index(g, j)] = max(own[Map::index(g, j)], doubled);
        smallest = min(smallest, doubled - 1);
      }
  }

  __device__ __forceinline__ void gather_largest(unsigned (&largest)[SPLIT_LINES]) const {
    unsigned all[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) all[i] = own[i];
    int i;
    const Map at = map();
    const unsigned same = reduce_lines<Map::SHARED>(all, i, [](unsigned a, unsigned b) { return max(a, b); });
    if ((at.t & same) == 0) atomicMax(&largest[at.line(i)], all[0]);
    __syncthreads();
  }

  __device__ __forceinline__ void take_scales(const unsigned (&largest)[SPLIT_LINES], int headroom) {
    const unsigned t = ptx::thread_index(), lane = t % 32;
    __syncwarp();
    if (lane < SPLIT_LINES) shared.scale[t / 32][lane] = power_of_two(exponent_for(largest[lane], S::TOP) - headroom);
    __syncwarp();
  }

  // Of line i, and of the pair of lines that i begins.
  __device__ __forceinline__ uint32_t scale_at(const Map& at, int i) const {
    return ptx::shared_address(&shared.scale[at.t / 32][at.line(i)]);
  }
  __device__ __forceinline__ float2 scales_of_pair(const Map& at, int g, int i) const {
    if constexpr (IS_B) return ptx::load2(scale_at(at, Map::index(g, 2 * i)));
    const float scale = ptx::load1(scale_at(at, Map::index(g, 2 * i)));
    return {scale, scale};
  }

  __device__ __forceinline__ void write(int piece) {
    const auto large = S::pair(plan.large, plan.large);
    const Map at = map();
    // Of a panel: its 16 lines, which these are, its bytes for 64 k.
    const unsigned panel_groups = UNSWIZZLED ? plan.b_panel : 4, quarter = group() % panel_groups;
    const unsigned block_bytes = S::COUNT * panel_groups * SPLIT_LINES * TERM_ROW_BYTES;
    char* const terms = x.terms + int64_t{group() / panel_groups} * plan.k_blocks * block_bytes;
    const int blocks_before = piece * (PIECE / TERM_BLOCK);
    const unsigned k_left = static_cast<unsigned>(plan.k_blocks - blocks_before) * TERM_BLOCK;
    const unsigned term_bytes = block_bytes / S::COUNT;
    char* const to_piece = terms + int64_t{blocks_before} * block_bytes;
#pragma unroll
    for (int g = 0; g < CHUNKS; ++g) {
      alignas(16) typename S::Pair cut[S::COUNT][4];
      float2 scales = scales_of_pair(at, g, 0);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i > 0 && LINES == 8) scales = scales_of_pair(at, g, i);
        float2 rest{v[g][2 * i] * scales.x, v[g][2 * i + 1] * scales.y};
#pragma unroll
        for (int s = 0; s < S::COUNT; ++s) {
          cut[s][i] = S::pair(rest.x, rest.y);
          const float2 rounded = S::floats(cut[s][i]);
          rest.x -= rounded.x, rest.y -= rounded.y;
        }
        if constexpr (S::COUNT == 2) low |= *reinterpret_cast<const unsigned*>(&cut[1][i]);
        large_count[IS_B ? i % COUNTS : Map::index(g, 0)] += __hge2_mask(__habs2(cut[0][i]), large) & 0x00010001u;
      }
      if constexpr (Map::PAIRS) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned k = at.k_of_pair(g * 4 + i);
          char* const to = to_piece + k / TERM_BLOCK * block_bytes +
                           (UNSWIZZLED ? at.place_of_pair_unswizzled(g * 4 + i, quarter * 2 + at.t % 2)
                                       : at.place_of_pair(g * 4 + i, quarter));
          if (k < k_left)
#pragma unroll
            for (int s = 0; s < S::COUNT; ++s) *reinterpret_cast<typename S::Pair*>(to + s * term_bytes) = cut[s][i];
        }
      } else {
        char* const to = to_piece + at.k(g) / TERM_BLOCK * block_bytes +
                         (UNSWIZZLED ? at.place_unswizzled(g, quarter * 2 + at.t % 2) : at.place(g, quarter));
        if (at.k(g) < k_left)
#pragma unroll
          for (int s = 0; s < S::COUNT; ++s)
            *reinterpret_cast<uint4*>(to + s * term_bytes) = *reinterpret_cast<const uint4*>(cut[s]);
      }
      __syncwarp();  // otherwise the compiler keeps what it has cut of all chunks, and stores it at the end
    }
  }

  // Pieces `piece` to `end` - 1, three or more, by the scale that the first piece of the lines suggests. The maxima end
  // up in shared.largest[1], those of the first piece in shared.largest[0].
  __device__ __forceinline__ void write_by_guess(int piece, int end) {
    Numbers next;
    read(v, 0);
    read(next, max(piece, 1));
    measure();
    gather_largest(shared.largest[0]);
    take_scales(shared.largest[0], HEADROOM);
    if (piece > 0) {
      take(next);
      if (piece + 1 < end) read(next, piece + 1);
      measure();
    }
    for (;;) {
      write(piece);
      if (++piece == end) break;
      take(next);
      if (piece + 1 < end) read(next, piece + 1);
      measure();
    }
    gather_largest(shared.largest[1]);
  }

  static __device__ __forceinline__ int exponent(unsigned largest, bool guessed) {
    return exponent_for(largest, S::TOP) - (guessed ? HEADROOM : 0);
  }
  // Whether a line whose guessed exponent is e has left the range.
  static __device__ __forceinline__ bool left_range(unsigned largest, int e) {
    const int exact = exponent_for(largest, S::TOP);
    return largest != 0 && (exact < e || exact > e + HEADROOM);
  }

  // Again, by the scales of the true maxima in shared.largest[1].
  template <bool MEASURE>
  __device__ __forceinline__ void write_again(int from, int end) {
    take_scales(shared.largest[1], 0);
    for (unsigned& count : large_count) count = 0;
    for (int piece = from; piece < end; ++piece) {
      read(v, piece);
      if (MEASURE) measure();
      write(piece);
    }
  }

  // Adds to shared.large_count and shared.low, returns RANGE_SMALL if there are small numbers, to all threads. LAST:
  // the terms are written, and the product may start as soon as there is room: 50.2 us for 51.1 at 2048, 31.5 for 32.1
  // at 1536. For three terms the registers do not last.
  template <bool LAST = false>
  __device__ __forceinline__ unsigned count() const {
    unsigned counts[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
      const unsigned pair = large_count[IS_B ? i / 2 : i];
      counts[i] = IS_B ? pair >> i % 2 * 16 & 0xffff : (pair & 0xffff) + (pair >> 16);
    }
    int i;
    const Map at = map();
    const unsigned same = reduce_lines<Map::SHARED>(counts, i, [](unsigned a, unsigned b) { return a + b; });
    if ((at.t & same) == 0) atomicAdd(&shared.large_count[at.line(i)], counts[0]);
    if (S::COUNT == 2 && __any_sync(0xffffffffu, low != 0) && at.t % 32 == 0) shared.low = 1;
    if constexpr (LAST && S::COUNT == 2) pdl_launch_next();
    bool any_small = false;
#pragma unroll
    for (int j = 0; j < LINES; ++j)
      any_small |= smallest != ~0u && __uint_as_float((smallest + 1) >> 1) * ptx::load1(scale_at(at, j)) < plan.small;
    return __syncthreads_or(any_small) ? RANGE_SMALL : 0;
  }
};

// Panels of another width than 64 columns are for tiles that no code but that of 9.0a has (persistent_product.cuh).
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool HAS_UNSWIZZLED = true;
#else
constexpr bool HAS_UNSWIZZLED = false;
#endif

// Calls split(type of LineSplitter, operand, flag of its low terms).
template <class S, class Shape, bool UNSWIZZLED, class Split>
__device__ __forceinline__ void by_any_operand(const SplitPlan& plan, unsigned group, Split&& split) {
  const bool is_b = group >= plan.a_groups;
  const SplitOperand& x = is_b ? plan.b : plan.a;
  if (!is_b) {
    if (x.k_contiguous) split(std::type_identity<LineSplitter<S, Shape, false, true, false>>{}, plan.a, RANGE_LOW_A);
    else split(std::type_identity<LineSplitter<S, Shape, false, false, false>>{}, plan.a, RANGE_LOW_A);
  } else {
    if (x.k_contiguous)
      split(std::type_identity<LineSplitter<S, Shape, true, true, UNSWIZZLED>>{}, plan.b, RANGE_LOW_B);
    else split(std::type_identity<LineSplitter<S, Shape, true, false, UNSWIZZLED>>{}, plan.b, RANGE_LOW_B);
  }
}

template <class S, class Shape, bool UNSWIZZLED, class Split>
__device__ __forceinline__ void by_operand(const SplitPlan& plan, unsigned group, Split&& split) {
  if constexpr (UNSWIZZLED && !HAS_UNSWIZZLED) not_for_this_target();
  else by_any_operand<S, Shape, UNSWIZZLED>(plan, group, split);
}

template <class Lines, bool LONG>
__device__ __forceinline__ void split_group(const SplitPlan& plan, const SplitOperand& x, unsigned low,
                                            SplitShared& shared) {
  Lines lines(plan, x, shared);
  bool guessed = false;
  if constexpr (!LONG) {
    lines.read(lines.v, 0);
    lines.measure();
    lines.gather_largest(shared.largest[0]);
    lines.take_scales(shared.largest[0], 0);
    lines.write(0);
  } else {
    const int pieces = static_cast<int>(ceil_div(plan.k, Lines::PIECE));
    lines.write_by_guess(0, pieces);
    bool left = false;
    if (threadIdx.x < SPLIT_LINES)
      left = Lines::left_range(shared.largest[1][threadIdx.x], lines.exponent(shared.largest[0][threadIdx.x], true));
    guessed = !__syncthreads_or(left);
    if (!guessed) lines.template write_again<false>(0, pieces);
  }

  const unsigned flags = lines.template count<true>();
  if (threadIdx.x >= 32) return;
  const unsigned line = threadIdx.x % SPLIT_LINES, scaled_by = shared.largest[LONG && !guessed ? 1 : 0][line];
  report_lines(plan, x, lines.group(), shared.largest[LONG ? 1 : 0][line], shared.large_count[line],
               Lines::exponent(scaled_by, guessed), flags | (shared.low ? low : 0));
}

// LONG: k > 1024. There a thread has registers for the piece that comes next.
template <class S, bool LONG, class Shape, int RESIDENT, bool UNSWIZZLED>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    operand_split_kernel(const __grid_constant__ SplitPlan plan) {
  __shared__ SplitShared shared;
  if (plan.early) pdl_launch_next();
  ptx::touch(plan);
  pdl_wait();
  if (!split_wanted(plan)) return;
  for (unsigned block = blockIdx.x; block < plan.groups; block = shared.kept_block() + gridDim.x) {
    clear(shared, block);
    by_operand<S, Shape, UNSWIZZLED>(plan, block, [&](auto type, const SplitOperand& x, unsigned low) {
      split_group<typename decltype(type)::type, LONG>(plan, x, low, shared);
    });
  }
}

// ---------------------------------------------------------------- segments of long lines
struct SplitSegments {
  SplitPlan split;
  unsigned segments;
  SegmentRecord* records;  // [group][segment]
  SegmentRecord* totals;   // of a group that is split again
};

// A block for each segment of each group, groups first: their neighbours read the same rows of a row-major B.
__device__ __forceinline__ unsigned segment_of_block(const SplitSegments& plan) {
  return ptx::block_index() / plan.split.groups;
}

struct SegmentPieces {
  int from, end;
  __device__ __forceinline__ SegmentPieces(const SplitSegments& plan, int piece) {
    const unsigned segment = segment_of_block(plan);
    const unsigned pieces = (static_cast<unsigned>(plan.split.k) + piece - 1) / piece;
    from = static_cast<int>(pieces * segment / plan.segments),
    end = static_cast<int>(pieces * (segment + 1) / plan.segments);
  }
};

template <class Lines>
__device__ __forceinline__ void split_segment(const SplitSegments& plan, const SplitOperand& x, unsigned low,
                                              SplitShared& shared) {
  const SegmentPieces pieces(plan, Lines::PIECE);
  Lines lines(plan.split, x, shared);
  lines.write_by_guess(pieces.from, pieces.end);
  const unsigned flags = lines.count();
  if (threadIdx.x >= SPLIT_LINES) return;
  const unsigned group = shared.kept_block(), segment = segment_of_block(plan);
  SegmentRecord& record = plan.records[group * plan.segments + segment];
  record.largest[threadIdx.x] = shared.largest[1][threadIdx.x];
  record.large_count[threadIdx.x] = shared.large_count[threadIdx.x];
  if (threadIdx.x == 0) record.flags = flags | (shared.low ? low : 0);
  if (segment != 0) return;
  const int64_t line = int64_t{lines.group()} * SPLIT_LINES + threadIdx.x;
  if (line < x.lines) x.exponents[line] = Lines::exponent(shared.largest[0][threadIdx.x], true);
  plan.totals[group].large_count[threadIdx.x] = 0;
  if (threadIdx.x == 0) plan.totals[group].flags = plan.totals[group].arrived = 0;
}

// Calls work(type of LineSplitter, operand, flag of its low terms).
template <class S, class Shape, bool UNSWIZZLED, class Work>
__device__ __forceinline__ void on_segment(const SplitSegments& plan, SplitShared& shared, Work&& work) {
  ptx::touch(plan);
  pdl_wait();
  if (!split_wanted(plan.split)) return;
  const unsigned group = blockIdx.x % plan.split.groups;
  clear(shared, group);
  by_operand<S, Shape, UNSWIZZLED>(plan.split, group, work);
}

template <class S, class Shape, int RESIDENT, bool UNSWIZZLED>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    split_segments_kernel(const __grid_constant__ SplitSegments plan) {
  __shared__ SplitShared shared;
  on_segment<S, Shape, UNSWIZZLED>(plan, shared, [&](auto type, const SplitOperand& x, unsigned low) {
    split_segment<typename decltype(type)::type>(plan, x, low, shared);
  });
}

// All that the segments of a group have found, to shared.largest[1], large_count and the flags that come back.
__device__ __forceinline__ unsigned read_records(const SplitSegments& plan, unsigned group, SplitShared& shared) {
  const unsigned line = threadIdx.x % SPLIT_LINES;
  unsigned largest = 0, large_count = 0, flags = 0;
  for (unsigned s = threadIdx.x / SPLIT_LINES; s < plan.segments; s += blockDim.x / SPLIT_LINES) {
    const SegmentRecord& record = plan.records[group * plan.segments + s];
    largest = max(largest, record.largest[line]), large_count += record.large_count[line], flags |= record.flags;
  }
  if (largest) atomicMax(&shared.largest[1][line], largest);
  if (large_count) atomicAdd(&shared.large_count[line], large_count);
  if (flags) atomicOr(&shared.low, flags);
  __syncthreads();
  return shared.low;
}

template <class Lines>
__device__ __forceinline__ void finish_segment(const SplitSegments& plan, const SplitOperand& x, unsigned low,
                                               SplitShared& shared) {
  Lines lines(plan.split, x, shared);
  const unsigned found = read_records(plan, shared.kept_block(), shared), line = threadIdx.x % SPLIT_LINES;
  const int64_t line0 = int64_t{lines.group()} * SPLIT_LINES;
  int e = 0;
  bool left = false;
  if (threadIdx.x < 32 && line0 + line < x.lines) {
    e = x.exponents[line0 + line];
    left = Lines::left_range(shared.largest[1][line], e);
  }
  if (!__syncthreads_or(left)) {
    if (segment_of_block(plan) == 0 && threadIdx.x < 32)
      report_lines(plan.split, x, lines.group(), shared.largest[1][line], shared.large_count[line], e, found);
    return;
  }

  if (threadIdx.x < SPLIT_LINES) shared.large_count[threadIdx.x] = 0;
  if (threadIdx.x == 0) shared.low = 0;
  __syncthreads();
  const SegmentPieces pieces(plan, Lines::PIECE);
  lines.template write_again<true>(pieces.from, pieces.end);
  const unsigned flags = lines.count();
  if (threadIdx.x >= 32) return;
  SegmentRecord& total = plan.totals[shared.kept_block()];
  if (threadIdx.x < SPLIT_LINES) atomicAdd(&total.large_count[line], shared.large_count[line]);
  if (threadIdx.x == 0) atomicOr(&total.flags, flags | (shared.low ? low : 0));
  __threadfence();
  __syncwarp();
  const unsigned arrived = threadIdx.x == 0 ? atomicAdd(&total.arrived, 1) : 0;
  if (__shfl_sync(0xffffffffu, arrived, 0) + 1 != plan.segments) return;
  __threadfence();
  report_lines(plan.split, x, lines.group(), shared.largest[1][line], __ldcg(&total.large_count[line]),
               Lines::exponent(shared.largest[1][line], false), __ldcg(&total.flags));
}

template <class S, class Shape, int RESIDENT, bool UNSWIZZLED>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    finish_segments_kernel(const __grid_constant__ SplitSegments plan) {
  __shared__ SplitShared shared;
  if (plan.split.early) pdl_launch_next();
  on_segment<S, Shape, UNSWIZZLED>(plan, shared, [&](auto type, const SplitOperand& x, unsigned low) {
    finish_segment<typename decltype(type)::type>(plan, x, low, shared);
  });
}

}  // namespace fl
