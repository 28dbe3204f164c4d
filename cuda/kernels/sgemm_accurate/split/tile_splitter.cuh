// The split pass of 16 lines in little code, for kernels of something else and for what few calls need: the order and
// the type of the operand are known when the kernel runs. Its numbers go to a tile in shared memory, and from there to
// the chunks of the terms. Terms and range words are those of LineSplitter, with the scales of the true maxima.
#pragma once

#include "cuda/kernels/sgemm_accurate/split/line_splitter.cuh"

namespace fl {

// PIECE: numbers of a line that the tile holds. Rows that are 2 (mod 32) long: columns of 16 lines hit all banks.
template <int PIECE>
struct SplitTile {
  SplitShared lines;
  unsigned smallest[SPLIT_LINES];
  float numbers[SPLIT_LINES][PIECE + 2];
};

// HALVES: the operand may be in 16 bits. By THREADS threads.
template <class S, int PIECE, bool HALVES>
struct TileSplitter {
  static constexpr unsigned THREADS = LongSplit::THREADS, WARPS = THREADS / 32;
  static constexpr unsigned LD = PIECE + 2;
  static_assert(PIECE % TERM_BLOCK == 0 && THREADS == 256);

  const SplitPlan& plan;
  SplitTile<PIECE>& tile;
  const bool is_b;
  const SplitOperand& x;
  const unsigned group;  // of 16 lines of this operand

  __device__ __forceinline__ TileSplitter(const SplitPlan& plan, SplitTile<PIECE>& tile, unsigned number)
      : plan(plan),
        tile(tile),
        is_b(number >= plan.a_groups),
        x(is_b ? plan.b : plan.a),
        group(is_b ? number - plan.a_groups : number) {
    if (threadIdx.x < SPLIT_LINES) tile.smallest[threadIdx.x] = ~0u;
  }

  // The k of whole blocks from `from` on that the tile holds.
  __device__ __forceinline__ unsigned count(int64_t from) const {
    return static_cast<unsigned>(min(plan.k_blocks * TERM_BLOCK - from, int64_t{PIECE}));
  }

  __device__ __forceinline__ float number(int64_t at) const {
    if constexpr (HALVES)
      if (x.in_16_bits) {
        const uint16_t bits = __ldg(static_cast<const uint16_t*>(x.data) + at);
        return widened(bits, x.bfloat);
      }
    return __ldg(static_cast<const float*>(x.data) + at);
  }

  // A line of a warp, or a line of every 16th thread: what is contiguous is read together. All threads have to be done
  // with what is there. The maxima go to largest[1]. Not by asynchronous copies: with one of those in a kernel the
  // compiler has each of its fences wait.
  __device__ __forceinline__ void read(int64_t from) const {
    constexpr int AHEAD = 32;  // numbers of a thread that are on their way
    const unsigned t = threadIdx.x, ks = count(from), exist = up_to_limit(plan.k - from);
    const bool along_k = x.k_contiguous;
    const unsigned step = along_k ? 32 : THREADS / SPLIT_LINES, next_line = along_k ? WARPS : SPLIT_LINES;
    const int64_t line_stride = along_k ? x.ld : 1, k_stride = along_k ? 1 : x.ld, next = step * k_stride;
    for (unsigned line = along_k ? t / 32 : t % SPLIT_LINES; line < SPLIT_LINES; line += next_line) {
      const int64_t line_of_all = int64_t{group} * SPLIT_LINES + line;
      const unsigned k_end = line_of_all < x.lines ? exist : 0;
      unsigned largest = 0, smallest = ~0u;
      for (unsigned k0 = along_k ? t % 32 : t / SPLIT_LINES; k0 < ks; k0 += AHEAD * step) {
        int64_t at = line_of_all * line_stride + (from + k0) * k_stride;
        float some[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i, at += next) some[i] = k0 + i * step < k_end ? number(at) : 0.0f;
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
          const unsigned doubled = __float_as_uint(some[i]) << 1;
          largest = max(largest, doubled), smallest = min(smallest, doubled - 1);
          if (k0 + i * step < ks) tile.numbers[line][k0 + i * step] = some[i];
        }
      }
      for (unsigned apart = along_k ? 1 : SPLIT_LINES; apart < 32; apart *= 2) {
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, apart));
        smallest = min(smallest, __shfl_xor_sync(0xffffffffu, smallest, apart));
      }
      if (t % 32 < (along_k ? 1 : SPLIT_LINES)) {
        atomicMax(&tile.lines.largest[1][line], largest);
        atomicMin(&tile.smallest[line], smallest);
      }
    }
    __syncthreads();
  }

  // To be called between barriers, when the maxima are known.
  __device__ __forceinline__ void take_scales() const {
    const unsigned t = threadIdx.x;
    if (t < SPLIT_LINES) tile.lines.scale[0][t] = power_of_two(exponent_for(tile.lines.largest[1][t], S::TOP));
  }

  // The chunks of a thread are 128 k apart, of the same line of A or the same eight columns of B: see SplitThreadMap.
  __device__ __forceinline__ void write(int64_t from) const {
    const unsigned t = threadIdx.x, ks = count(from);
    const unsigned line = is_b ? t % 2 * 2 : t / 8 % SPLIT_LINES, next_line = is_b ? 1 : 0;
    const unsigned next = is_b ? LD : 1, next_pair = is_b ? 4 * LD : 2;
    unsigned k = is_b ? t / 2 : t / 128 * TERM_BLOCK + t % 8 * 8;
    const float* number = &tile.numbers[line][k];
    float2 scales[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const scale = &tile.lines.scale[0][line + 4 * i * next_line];
      scales[i] = {scale[0], scale[next_line]};
    }

    const unsigned panel_groups = S::COUNT == 2 && is_b ? plan.b_panel : 4, quarter = group % panel_groups;
    const unsigned term_bytes = panel_groups * SPLIT_LINES * TERM_ROW_BYTES, block_bytes = S::COUNT * term_bytes;
    const unsigned row = is_b ? k % TERM_BLOCK : quarter * SPLIT_LINES + line;
    const unsigned column = is_b ? quarter * 2 + t % 2 : k / 8 % 8;
    char* to = x.terms +
               (int64_t{group / panel_groups} * plan.k_blocks + from / TERM_BLOCK + k / TERM_BLOCK) * block_bytes +
               (panel_groups == 4 ? row * 128 + ((column ^ row % 8) << 4) : column * 1024 + row * 16);

    const auto large = S::pair(plan.large, plan.large),
               level = S::pair(power_of_two(plan.level), power_of_two(plan.level));
    unsigned counts[4] = {}, quarters[4] = {}, low = 0;  // of pairs of lines: two 16-bit counters in one
#pragma unroll 2
    for (; k < ks; k += 128, number += 128, to += 2 * block_bytes) {
      alignas(16) typename S::Pair cut[S::COUNT][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        cut_pair<S>({number[i * next_pair] * scales[i].x, number[i * next_pair + next] * scales[i].y},
                    plan.second_scale, cut, i, low);
        count_pair<S>(cut[0][i], large, large, level, counts[i], quarters[i]);
      }
#pragma unroll
      for (int s = 0; s < S::COUNT; ++s)
        if (s == 0 || !x.one_term)
          *reinterpret_cast<uint4*>(to + s * term_bytes) = *reinterpret_cast<const uint4*>(cut[s]);
    }
    if (low) tile.lines.low = 1;
    add_counts(counts, tile.lines.large_count, line);
    if constexpr (S::COUNT == 2) add_counts(quarters, tile.lines.quarters, line);
  }

  // k from `from` up to `end` by the scales of the maxima in largest[1]. `there`: all of it is in the tile.
  __device__ __forceinline__ void write_all(int64_t from, int64_t end, bool there = false) const {
    __syncthreads();
    take_scales();
    __syncthreads();
    for (; from < end; from += PIECE) {
      if (!there) read(from);
      write(from);
      __syncthreads();
    }
  }

  // By the first warp. Whether numbers are small is asked of all lines together that a thread of LineSplitter has, so
  // that the words are the same; `together`: the bits of their numbers in which such lines differ.
  __device__ __forceinline__ unsigned flags() const {
    const unsigned line = threadIdx.x % SPLIT_LINES, together = is_b ? x.k_contiguous ? 13 : 1 : x.k_contiguous ? 0 : 3;
    unsigned smallest = tile.smallest[line];
    float scale = tile.lines.scale[0][line];
    for (unsigned apart = 1; apart < SPLIT_LINES; apart *= 2)
      if (together & apart) {
        smallest = min(smallest, __shfl_xor_sync(0xffffffffu, smallest, apart));
        scale = min(scale, __shfl_xor_sync(0xffffffffu, scale, apart));
      }
    const bool small = smallest != ~0u && __uint_as_float((smallest + 1) >> 1) * scale < plan.small;
    const unsigned low = tile.lines.low ? is_b ? RANGE_LOW_B : RANGE_LOW_A : 0;
    return ptx::warp_or(small ? RANGE_SMALL : 0) | low;
  }

 private:
  // Lanes that have the same lines differ in the lowest three bits of A, in all but the lowest of B.
  __device__ __forceinline__ void add_counts(unsigned (&counts)[4], unsigned (&sums)[SPLIT_LINES],
                                             unsigned line) const {
    if (!is_b) counts[0] += counts[1] + counts[2] + counts[3];
    const unsigned first = is_b ? 2 : 1, end = is_b ? 32 : 8, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i > 0 && !is_b) break;
      for (unsigned apart = first; apart < end; apart *= 2) counts[i] += __shfl_xor_sync(0xffffffffu, counts[i], apart);
      if (is_b && lane < 2) {
        atomicAdd(&sums[line + 4 * i], counts[i] & 0xffff);
        atomicAdd(&sums[line + 4 * i + 1], counts[i] >> 16);
      }
    }
    if (!is_b && lane % 8 == 0) atomicAdd(&sums[line], (counts[0] & 0xffff) + (counts[0] >> 16));
  }
};

// All of 16 lines, by all threads of a block. They are read twice unless the tile holds all k.
template <class S, int PIECE, bool HALVES>
__device__ __forceinline__ void split_by_tile(const SplitPlan& plan, unsigned number, SplitTile<PIECE>& tile) {
  const TileSplitter<S, PIECE, HALVES> lines(plan, tile, number);
  clear(tile.lines, number);
  for (int64_t from = 0; from < plan.k; from += PIECE) {
    if (from > 0) __syncthreads();
    lines.read(from);
  }
  lines.write_all(0, plan.k, plan.k <= PIECE);
  if (threadIdx.x >= 32) return;
  const unsigned line = threadIdx.x % SPLIT_LINES, largest = tile.lines.largest[1][line];
  report_lines<S>(plan, lines.x, lines.group, largest, tile.lines.large_count[line], tile.lines.quarters[line],
                  exponent_for(largest, S::TOP), lines.flags(), false);
}

}  // namespace fl
