// What a block of the split pass does with its 16 lines: maxima, scales and terms, and a word for the range check.
#pragma once

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"
#include "cuda/kernels/sgemm_accurate/split/thread_map.cuh"

namespace fl {

struct SplitPlan {
  SplitOperand a, b;
  int64_t k, k_blocks;
  unsigned a_groups, groups;  // of 16 lines: those of A, then those of B; none of a prepacked operand
  unsigned b_panel;           // groups of a panel of B
  float small, large;         // thresholds on scaled numbers
  int level;                  // see RangeBound
  float second_scale;         // of two terms
  float per_k;                // 1 / k, rounded up
  bool early;                 // whether the product's blocks may start as soon as there is room, or by the end
  const unsigned* previous;   // the status of the terms that were tried before these, if any
  unsigned* taken;  // groups, then units, that blocks have taken, and finished, where three terms are behind two
  bool beside;      // works beside the launch before it, which has waited for all before that
  // Where three terms come before two: their pass says what it knows of two (see RangeCheck).
  unsigned* words_of_two;
  float small_of_two, large_of_two, sure_of_two;  // thresholds of numbers that are scaled for three
  int larger_for_three;                           // by so many octaves
};

struct SplitShared {
  unsigned largest[2][SPLIT_LINES], large_count[SPLIT_LINES], quarters[SPLIT_LINES], low;
  unsigned segment;  // of k, where blocks take segments
  // For each warp, so that no other has to be waited for: what would take registers where numbers need them all.
  unsigned block[32];                        // the group of lines
  alignas(16) float scale[32][SPLIT_LINES];  // of its lines, read in pairs

  __device__ __forceinline__ unsigned block_of_warp() const {
    return *static_cast<const volatile unsigned*>(&block[ptx::thread_index() / 32]);
  }
};

__device__ __forceinline__ void clear(SplitShared& shared, unsigned block) {
  const unsigned t = ptx::thread_index();
  __syncwarp();
  if (t % 32 == 0) shared.block[t / 32] = block;
  if (t == 0) shared.low = 0;
  if (t < SPLIT_LINES) shared.largest[0][t] = shared.largest[1][t] = shared.large_count[t] = shared.quarters[t] = 0;
  __syncthreads();
}

template <class S>
__device__ __forceinline__ bool split_wanted(const SplitPlan& plan) {
  if (S::COUNT == 2 && ptx::block_index() == 0 && threadIdx.x < 8) plan.taken[threadIdx.x] = 0;  // for three terms
  return !plan.previous || out_of_range(*plan.previous);
}

// Whether numbers that these terms count in a first pass are those of two terms: none is so small that three count it.
template <class S>
constexpr bool COUNTS_FOR_TWO = S::COUNT == 3;
// The scale of a long line is guessed from its first piece. That of three terms has room for more.
template <class S>
constexpr int GUESS_HEADROOM = S::COUNT == 3 ? 20 : 4;

// n parts of k, in units of 1 / `units`, rounded up.
__device__ __forceinline__ unsigned part_of_k(const SplitPlan& plan, unsigned n, unsigned units) {
  return __float2uint_ru(__fmul_ru(__uint2float_ru(n), plan.per_k * units));
}

// By the first warp of a block: lane i knows all about line i, which was multiplied by 2^e.
template <class S>
__device__ __forceinline__ void report_lines(const SplitPlan& plan, const SplitOperand& x, unsigned group,
                                             unsigned largest, unsigned large_count, unsigned quarters, int e,
                                             unsigned flags, bool of_two) {
  const unsigned lane = threadIdx.x;
  const int64_t line0 = int64_t{group} * SPLIT_LINES;
  unsigned not_large = 0, depth = 0;
  int top = 0;
  if (lane < SPLIT_LINES && line0 + lane < x.lines) {
    if (largest != 0) {
      if (largest >= 0xff000000u) flags |= RANGE_NOT_FINITE;
      if (abs(e) > NARROW) flags |= RANGE_WIDE;
      if (largest >= (127u + RangeBound::TALL) << 24) flags |= RANGE_TALL;
      not_large = part_of_k(plan, static_cast<unsigned>(plan.k) - large_count, ALL_OF_LINE);
      // 2^top is beyond the line, as it was scaled for two terms, or would be. What three terms say of two has to be
      // too little, not too much.
      top = S::TOP + 1 + e - exponent_for(largest, S::TOP) - (S::COUNT == 3 ? plan.larger_for_three : 0);
      const int below =
          S::COUNT == 2 ? int(large_count) * 4 * (plan.level + 15) - int(quarters) : int(quarters) - int(large_count);
      depth = part_of_k(plan, max(below, 0), OCTAVE / 4);
      flags |= RANGE_TOP & RANGE_TOP >> max(RangeBound::SHORT_TOP - top, 0);
    }
    x.exponents[line0 + lane] = e;
  }
  not_large = ptx::warp_max(not_large), depth = ptx::warp_max(depth);
  flags = ptx::warp_or(flags);
  if constexpr (COUNTS_FOR_TWO<S>) {
    // The scale of two terms is another power of two, unless there are only zeros, or that is too large for three, or
    // that of two was guessed wrong.
    const int exact = e + (plan.k > RangeBound::ONE_PIECE ? GUESS_HEADROOM<Bf16Terms> : 0);
    const bool other = largest != 0 && (exact == 0 || exact == 127 || top > RangeBound::SHORT_TOP);
    const bool known = of_two && !ptx::warp_or(other);
    const bool is_b = &x == &plan.b;
    if (lane == 0 && plan.words_of_two)
      plan.words_of_two[is_b ? plan.a_groups + group : group] =
          known ? (flags & (RANGE_SMALL | RANGE_NOT_FINITE | RANGE_TOP)) | depth * (RANGE_NOT_LARGE + 1) | not_large
                : 0;
    if (of_two) flags &= ~RANGE_SMALL, not_large = 0;
    depth = 0;
  }
  if (lane == 0) x.words[group] = flags | depth * (RANGE_NOT_LARGE + 1) | not_large;
}

// Whether a line whose guessed exponent is e has left the range.
template <class S>
__device__ __forceinline__ bool guess_failed(unsigned largest, int e) {
  const int exact = exponent_for(largest, S::TOP);
  return largest != 0 && (exact < e || exact > e + GUESS_HEADROOM<S>);
}

// UNSWIZZLED: panels of B of another width than 64 columns. HALVES: the operand is in 16 bits.
template <class S, bool HALVES, class Shape, bool IS_B, bool K_CONTIGUOUS, bool UNSWIZZLED>
struct LineSplitter {
  using Terms = S;
  using Map = SplitThreadMap<Shape, IS_B, K_CONTIGUOUS, UNSWIZZLED>;
  static constexpr int CHUNKS = Shape::CHUNKS, PIECE = Shape::PIECE, LINES = Map::LINES;
  static constexpr int COUNTS = IS_B ? LINES / 2 : LINES;
  using Run = HalvesRun<Map::V>;
  using Next = std::conditional_t<HALVES, Run[Map::RUNS], float[CHUNKS][8]>;  // of 16 bits not converted yet

  const SplitPlan& plan;
  const SplitOperand& x;
  SplitShared& shared;

  float v[CHUNKS][8];
  unsigned own[LINES] = {}, smallest = ~0u;  // of magnitudes' bits times 2; minus 1, so that zero is the largest
  unsigned large_count[COUNTS] = {}, quarters[COUNTS] = {};  // two 16-bit counters in one
  unsigned low = 0;                                          // bits of the low terms
  bool of_two = COUNTS_FOR_TWO<S>;

  __device__ __forceinline__ LineSplitter(const SplitPlan& plan, const SplitOperand& x, SplitShared& shared)
      : plan(plan), x(x), shared(shared) {}

  static __device__ __forceinline__ Map map() {
    const Map at{ptx::thread_index()};
    __builtin_assume(at.t < Shape::THREADS);
    return at;
  }

  __device__ __forceinline__ bool written(int term) const { return !HALVES || term == 0 || !x.one_term; }

  // Which 16 lines of the operand these are. Asked for where it is needed, and not kept in a register meanwhile.
  __device__ __forceinline__ unsigned group() const { return shared.block_of_warp() - (IS_B ? plan.a_groups : 0); }

  // To numbers, or to put(r, run) if they are in 16 bits.
  template <class To>
  __device__ __forceinline__ void read(To&& to, int piece) const {
    const int64_t from = int64_t{piece} * PIECE, line0 = int64_t{group()} * SPLIT_LINES;
    const Map at = map();
    const bool full = x.by16 && line0 + SPLIT_LINES <= x.lines && from + PIECE <= plan.k;
    if constexpr (HALVES) {
      if (full) read_halves<true>(x, at, line0, from, plan.k, to);
      else read_halves<false>(x, at, line0, from, plan.k, to);
    } else {
      if (full) read_piece<true>(to, x, at, line0, from, plan.k);
      else read_piece<false>(to, x, at, line0, from, plan.k);
    }
  }
  __device__ __forceinline__ void read_now(int piece) {
    if constexpr (HALVES) read([&](int r, const Run& run) { take(r, run); }, piece);
    else read(v, piece);
  }
  __device__ __forceinline__ void read_ahead(Next& next, int piece) const {
    if constexpr (HALVES) read([&](int r, const Run& run) { next[r] = run; }, piece);
    else read(next, piece);
  }

  __device__ __forceinline__ void take(int r, const Run& run) {
#pragma unroll
    for (int i = 0; i < Map::V; ++i) v[Map::number(r, i) / 8][Map::number(r, i) % 8] = run.number(i, x.bfloat);
  }
  __device__ __forceinline__ void take(Next& next) {
    if constexpr (HALVES) {
#pragma unroll
      for (int r = 0; r < Map::RUNS; ++r) next[r].arrived(), take(r, next[r]);
    } else {
#pragma unroll
      for (int i = 0; i < CHUNKS * 8; ++i) v[i / 8][i % 8] = next[i / 8][i % 8];
    }
  }

  // GUESSED: only what the scale of long lines is guessed from.
  template <bool GUESSED = false>
  __device__ __forceinline__ void measure() {
    const Map at = map();
#pragma unroll
    for (int g = 0; g < CHUNKS; ++g)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (GUESSED && (Map::PAIRS ? at.k_of_pair(g * 4 + j / 2) : at.k(g)) >= SPLIT_PIECE) continue;
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
    const float at_least = of_two ? plan.large_of_two : plan.large, surely = of_two ? plan.sure_of_two : plan.large;
    const float level_power = power_of_two(plan.level + (of_two ? plan.larger_for_three : 0));
    const auto large = S::pair(at_least, at_least), sure = S::pair(surely, surely),
               level = S::pair(level_power, level_power);
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
        cut_pair<S>({v[g][2 * i] * scales.x, v[g][2 * i + 1] * scales.y}, plan.second_scale, cut, i, low);
        const int line = IS_B ? i % COUNTS : Map::index(g, 0);
        count_pair<S>(cut[0][i], large, sure, level, large_count[line], quarters[line]);
      }
      if constexpr (Map::PAIRS) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned k = at.k_of_pair(g * 4 + i);
          char* const to = to_piece + k / TERM_BLOCK * block_bytes +
                           (UNSWIZZLED ? at.offset_of_pair_unswizzled(g * 4 + i, quarter * 2 + at.t % 2)
                                       : at.offset_of_pair(g * 4 + i, quarter));
          if (k < k_left)
#pragma unroll
            for (int s = 0; s < S::COUNT; ++s)
              if (written(s)) *reinterpret_cast<typename S::Pair*>(to + s * term_bytes) = cut[s][i];
        }
      } else {
        char* const to = to_piece + at.k(g) / TERM_BLOCK * block_bytes +
                         (UNSWIZZLED ? at.offset_unswizzled(g, quarter * 2 + at.t % 2) : at.offset(g, quarter));
        if (at.k(g) < k_left)
#pragma unroll
          for (int s = 0; s < S::COUNT; ++s)
            if (written(s)) *reinterpret_cast<uint4*>(to + s * term_bytes) = *reinterpret_cast<const uint4*>(cut[s]);
      }
      __syncwarp();  // otherwise the compiler keeps what it has cut of all chunks, and stores it at the end
    }
  }

  // Pieces `from` to `end` - 1, by the scales that the first piece of the lines suggests, or else by those of the true
  // maxima. These end up in shared.largest[1], those of the first piece in shared.largest[0].
  __device__ __forceinline__ void write_pieces(int from, int end, bool guess) {
    Next next;
    read_ahead(next, 0);
    clear_counts();
    of_two = COUNTS_FOR_TWO<S> && guess;
    for (int piece = 0; piece < end;) {
      take(next);
      const int following = max(piece + 1, from);
      if (following < end) read_ahead(next, following);
      const bool guesses = piece == 0 && guess;
      if (PIECE != SPLIT_PIECE && guesses) measure<true>(), gather_largest(shared.largest[0]);
      measure();
      if (PIECE == SPLIT_PIECE && guesses) gather_largest(shared.largest[0]);
      if (piece == 0) take_scales(shared.largest[guess ? 0 : 1], guess ? GUESS_HEADROOM<S> : 0);
      if (piece >= from) write(piece);
      if ((piece - from) % PIECES_THAT_FIT == PIECES_THAT_FIT - 1) add_counts();
      piece = following;
    }
    gather_largest(shared.largest[1]);
  }

  static __device__ __forceinline__ int exponent(unsigned largest, bool guessed) {
    return exponent_for(largest, S::TOP) - (guessed ? GUESS_HEADROOM<S> : 0);
  }

  __device__ __forceinline__ void clear_counts() {
#pragma unroll
    for (int i = 0; i < COUNTS; ++i) large_count[i] = quarters[i] = 0;
  }

  // 16 bits have room for the quarters of so many pieces: at most 16 numbers of 512 k, at most 100 for each.
  static constexpr int PIECES_THAT_FIT = 16384 / PIECE;
  // To shared.large_count and quarters: of one piece both at a time, in 12 and 20 bits.
  template <bool ONE_PIECE = false>
  __device__ __forceinline__ void add_counts() {
    unsigned counts[LINES], sums[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
      counts[i] = of_line(large_count, i), sums[i] = of_line(quarters, i);
      if (ONE_PIECE) counts[i] |= sums[i] << 12;
    }
    const auto add = [](unsigned a, unsigned b) { return a + b; };
    int i;
    const Map at = map();
    const unsigned same = reduce_lines<Map::SHARED>(counts, i, add);
    if (!ONE_PIECE) reduce_lines<Map::SHARED>(sums, i, add);
    if ((at.t & same) == 0) {
      atomicAdd(&shared.large_count[at.line(i)], ONE_PIECE ? counts[0] & 0xfff : counts[0]);
      atomicAdd(&shared.quarters[at.line(i)], ONE_PIECE ? counts[0] >> 12 : sums[0]);
    }
    clear_counts();
  }
  // The lines of B are in pairs, and the pairs of a line of A along k.
  static __device__ __forceinline__ unsigned of_line(const unsigned (&pairs)[COUNTS], int i) {
    const unsigned pair = pairs[IS_B ? i / 2 : i];
    return IS_B ? pair >> i % 2 * 16 & 0xffff : (pair & 0xffff) + (pair >> 16);
  }

  // Adds to shared.large_count, quarters and low, returns RANGE_SMALL if there are small numbers, to all threads. LAST:
  // the terms are written, and the product may start as soon as there is room: 50.2 us instead of 51.1 at 2048, 31.5
  // instead of 32.1 at 1536. For three terms the registers do not last.
  template <bool LAST = false, bool ONE_PIECE = false>
  __device__ __forceinline__ unsigned count() {
    add_counts<ONE_PIECE>();
    const Map at = map();
    if (__any_sync(0xffffffffu, low != 0) && at.t % 32 == 0) shared.low = 1;
    if constexpr (LAST && S::COUNT == 2) pdl_launch_next();
    return __syncthreads_or(any_below(of_two ? plan.small_of_two : plan.small)) ? RANGE_SMALL : 0;
  }

  // Of this thread's numbers, scaled.
  __device__ __forceinline__ bool any_below(float limit) const {
    const Map at = map();
    bool any = false;
#pragma unroll
    for (int j = 0; j < LINES; ++j)
      any |= smallest != ~0u && __uint_as_float((smallest + 1) >> 1) * ptx::load1(scale_at(at, j)) < limit;
    return any;
  }
  // Whether a first pass has found numbers that three terms count: it is made again, with those counts.
  __device__ __forceinline__ bool counts_again() const { return COUNTS_FOR_TWO<S> && any_below(plan.large); }
};

}  // namespace fl
