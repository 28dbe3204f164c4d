// Sixteen lines of an operand on their way into slices: what a block of the split pass does with a range of their k.
//
// The operand is read once. Up to k = 1024 the first piece is all there is. Beyond that the scale comes from the first
// piece, with a factor 16 of headroom; the true maximum is known at the end, and 16 lines of which one has left the
// range are read and written again. Two passes instead cost 19 % more at 8192.
//
// The guard (docs/accuracy.md): one word for 16 lines says how many numbers of the worst line are not large, whether
// there are any so small that the slices cannot hold them, and NaN or Inf.
#pragma once

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_share.cuh"

namespace fl {

// The words of the guard. The rest of one counts.
constexpr unsigned GUARD_SMALL = 1u << 31, GUARD_NOT_FINITE = 1u << 30, GUARD_WIDE = 1u << 29;
constexpr unsigned GUARD_LOW_A = 1u << 28, GUARD_LOW_B = 1u << 27;  // numbers of more than eleven bits
constexpr unsigned GUARD_COUNT = GUARD_LOW_B - 1;
// Scales within 2^+-60 are applied in one step after the product, others in two.
constexpr int NARROW = 60;

struct SplitPlan {
  SplitOperand a, b;
  int64_t k, k_blocks;
  unsigned a_groups, groups;  // of lines: those of A, then those of B; none of an operand whose split is there
  unsigned b_tile;            // groups of a strip of B
  float small, large;         // thresholds on scaled numbers
  bool early;                 // whether the product's blocks may start as soon as there is room
  const unsigned* before;     // the verdict on slices that were tried before, if any
};

struct SplitShared {
  unsigned largest[2][SPLIT_LINES], large_count[SPLIT_LINES], low;
};

__device__ __forceinline__ void clear(SplitShared& shared) {
  if (threadIdx.x == 0) shared.low = 0;
  if (threadIdx.x < SPLIT_LINES)
    shared.largest[0][threadIdx.x] = shared.largest[1][threadIdx.x] = shared.large_count[threadIdx.x] = 0;
  __syncthreads();
}

// Whether slices of a split that was tried before leave something to do here.
__device__ __forceinline__ bool split_wanted(const SplitPlan& plan) {
  if (!plan.before) return true;
  const unsigned verdict = *plan.before;
  return verdict & VERDICT_REFUSED && !(verdict & VERDICT_NOT_FINITE);
}

// By the first warp of a block: lane i knows all about line i, which was multiplied by 2^e.
__device__ __forceinline__ void report_lines(const SplitPlan& plan, const SplitOperand& x, int64_t line0,
                                             unsigned largest, unsigned large_count, int e, unsigned flags,
                                             unsigned* word) {
  const unsigned lane = threadIdx.x;
  unsigned not_large = 0;
  if (lane < SPLIT_LINES && line0 + lane < x.lines) {
    if (largest != 0) {
      if (largest >= 0xff000000u) flags |= GUARD_NOT_FINITE;
      if (abs(e) > NARROW) flags |= GUARD_WIDE;
      not_large = static_cast<unsigned>(plan.k) - large_count;
    }
    x.exponents[line0 + lane] = e;
  }
  not_large = __reduce_max_sync(0xffffffffu, not_large);
  flags = __reduce_or_sync(0xffffffffu, flags);
  if (lane == 0) *word = flags | min(not_large, GUARD_COUNT);
}

// PACKED: strips of B of another width than 64 columns.
template <class S, class Shape, bool IS_B, bool K_CONTIGUOUS, bool PACKED>
struct LinesSplit {
  using Share = SplitShare<Shape, IS_B, K_CONTIGUOUS>;
  static constexpr int CHUNKS = Shape::CHUNKS, PIECE = Shape::PIECE, LINES = Share::LINES, HEADROOM = 4;
  static constexpr int COUNTS = IS_B ? LINES / 2 : LINES;
  using Numbers = float[CHUNKS][8];

  const SplitPlan& plan;
  const SplitOperand& x;
  SplitShared& shared;
  const Share at;
  const int64_t line0;
  const unsigned strip_groups, quarter, block_bytes;  // of a strip: its 16 lines, which these are, its bytes for 64 k
  char* const slices;

  Numbers v;
  unsigned own[LINES] = {}, smallest = ~0u;  // of magnitudes' bits times 2; minus 1, so that zero is the largest
  unsigned large_count[COUNTS] = {};         // two 16-bit counters in one
  unsigned low = 0;                          // bits of the low slices
  float scale[LINES];

  __device__ __forceinline__ LinesSplit(const SplitPlan& plan, const SplitOperand& x, unsigned group,
                                        SplitShared& shared)
      : plan(plan),
        x(x),
        shared(shared),
        at{threadIdx.x},
        line0(int64_t{group} * SPLIT_LINES),
        strip_groups(PACKED ? plan.b_tile : 4),
        quarter(group % strip_groups),
        block_bytes(S::COUNT * strip_groups * SPLIT_LINES * SLICE_LINE_BYTES),
        slices(x.slices + int64_t{group / strip_groups} * plan.k_blocks * block_bytes) {}

  __device__ __forceinline__ void read(Numbers& to, int piece) const {
    const int64_t from = int64_t{piece} * PIECE;
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
        own[Share::index(g, j)] = max(own[Share::index(g, j)], doubled);
        smallest = min(smallest, doubled - 1);
      }
  }

  __device__ __forceinline__ void gather_largest(unsigned (&largest)[SPLIT_LINES]) const {
    unsigned all[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) all[i] = own[i];
    int i;
    const unsigned same = reduce_lines<Share::SHARED>(all, i, [](unsigned a, unsigned b) { return max(a, b); });
    if ((at.t & same) == 0) atomicMax(&largest[at.line(i)], all[0]);
    __syncthreads();
  }

  __device__ __forceinline__ void take_scales(const unsigned (&largest)[SPLIT_LINES], int headroom) {
#pragma unroll
    for (int i = 0; i < LINES; ++i) scale[i] = power_of_two(exponent_for(largest[at.line(i)], S::TOP) - headroom);
  }

  __device__ __forceinline__ void write(int piece) {
    const auto large = S::pair(plan.large, plan.large);
    const int blocks_before = piece * (PIECE / SLICE_BLOCK);
    const unsigned k_left = static_cast<unsigned>(plan.k_blocks - blocks_before) * SLICE_BLOCK;
    const unsigned slice_bytes = block_bytes / S::COUNT;
    char* const to_piece = slices + int64_t{blocks_before} * block_bytes;
#pragma unroll
    for (int g = 0; g < CHUNKS; ++g) {
      alignas(16) typename S::Pair cut[S::COUNT][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float2 rest{v[g][2 * i] * scale[Share::index(g, 2 * i)], v[g][2 * i + 1] * scale[Share::index(g, 2 * i + 1)]};
#pragma unroll
        for (int s = 0; s < S::COUNT; ++s) {
          cut[s][i] = S::pair(rest.x, rest.y);
          const float2 rounded = S::floats(cut[s][i]);
          rest.x -= rounded.x, rest.y -= rounded.y;
        }
        if constexpr (S::COUNT == 2) low |= *reinterpret_cast<const unsigned*>(&cut[1][i]);
        large_count[IS_B ? i % COUNTS : Share::index(g, 0)] += __hge2_mask(__habs2(cut[0][i]), large) & 0x00010001u;
      }
      if constexpr (Share::PAIRS) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const unsigned k = at.k_of_pair(g * 4 + i);
          char* const to = to_piece + k / SLICE_BLOCK * block_bytes +
                           (PACKED ? at.place_of_pair_packed(g * 4 + i, quarter * 2 + at.t % 2)
                                   : at.place_of_pair(g * 4 + i, quarter));
          if (k < k_left)
#pragma unroll
            for (int s = 0; s < S::COUNT; ++s) *reinterpret_cast<typename S::Pair*>(to + s * slice_bytes) = cut[s][i];
        }
      } else {
        char* const to = to_piece + at.k(g) / SLICE_BLOCK * block_bytes +
                         (PACKED ? at.place_packed(g, quarter * 2 + at.t % 2) : at.place(g, quarter));
        if (at.k(g) < k_left)
#pragma unroll
          for (int s = 0; s < S::COUNT; ++s)
            *reinterpret_cast<uint4*>(to + s * slice_bytes) = *reinterpret_cast<const uint4*>(cut[s]);
      }
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

  // Adds to shared.large_count and shared.low, and returns GUARD_SMALL if there are small numbers, to all threads.
  __device__ __forceinline__ unsigned count() const {
    unsigned counts[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
      const unsigned pair = large_count[IS_B ? i / 2 : i];
      counts[i] = IS_B ? pair >> i % 2 * 16 & 0xffff : (pair & 0xffff) + (pair >> 16);
    }
    int i;
    const unsigned same = reduce_lines<Share::SHARED>(counts, i, [](unsigned a, unsigned b) { return a + b; });
    if ((at.t & same) == 0) atomicAdd(&shared.large_count[at.line(i)], counts[0]);
    if (S::COUNT == 2 && __any_sync(0xffffffffu, low != 0) && at.t % 32 == 0) shared.low = 1;
    bool any_small = false;
#pragma unroll
    for (int j = 0; j < LINES; ++j)
      any_small |= smallest != ~0u && __uint_as_float((smallest + 1) >> 1) * scale[j] < plan.small;
    return __syncthreads_or(any_small) ? GUARD_SMALL : 0;
  }
};

}  // namespace fl
