// The split pass: every row of A and every column of B, a "line" here, is scaled by a power of two and cut into slices
// of 16 bits, in the order and swizzle that the tensor cores read. So the product needs no tensor maps, and whatever
// layout, alignment or transposition the operands have ends here.
//
// A block takes 16 lines, 32 numbers per thread at a time. All four combinations of operand and layout run the same
// code; they differ in which 32 numbers a thread holds.
//
// The operand is read once. Up to k = 1024 the first piece is all there is. Beyond that the scale comes from the first
// piece, with a factor 16 of headroom; the true maximum is known at the end, and 16 lines of which one has left the
// range are read and written again. Two passes instead cost 19 % more at 8192.
//
// The guard (docs/accuracy.md): each block reports in one word how many numbers of its worst line are not large,
// whether there are any so small that the slices cannot hold them, and NaN or Inf.
//
// Clusters of eight blocks that share 64 lines, which this replaces, took 12.5 us for 10.3 at 2048 and 26 for 23 at
// 4096, k = 1024, but 276 for 350 at k = 8192: there one block of a multiprocessor does not keep memory busy.
#pragma once

#include "overlap.cuh"
#include "sliced_share.cuh"

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
  unsigned b_tile;            // groups of B that make up a tile; its strips are its own
  float small, large;         // thresholds on scaled numbers
  bool early;                 // whether the product's blocks may start as soon as there is room
  const unsigned* before;     // the verdict on slices that were tried before, if any
};

struct SplitShared {
  unsigned largest[2][SPLIT_LINES], large_count[SPLIT_LINES], low;
};

template <class S, class Shape, bool IS_B, bool K_CONTIGUOUS, bool LONG>
__device__ __forceinline__ void split_group(const SplitPlan& plan, const SplitOperand& x, unsigned group,
                                            unsigned* word, SplitShared& shared) {
  using Share = SplitShare<Shape, IS_B, K_CONTIGUOUS>;
  constexpr int CHUNKS = Shape::CHUNKS, PIECE = Shape::PIECE, LINES = Share::LINES;
  constexpr int COUNTS = IS_B ? LINES / 2 : LINES;
  const Share at{threadIdx.x};
  const int64_t line0 = int64_t{group} * SPLIT_LINES;
  const int pieces = LONG ? static_cast<int>(ceil_div(plan.k, PIECE)) : 1;
  const unsigned in_tile = IS_B ? group % plan.b_tile : group, tile = IS_B ? group / plan.b_tile : 0;
  const int64_t strip = int64_t{tile} * ((plan.b_tile + 3) / 4) + in_tile / 4;
  const unsigned quarter = in_tile % 4;
  char* const slices = x.slices + strip * plan.k_blocks * BLOCK_BYTES<S>;

  float v[CHUNKS][8];
  unsigned own[LINES] = {}, smallest = ~0u;  // of magnitudes' bits times 2; minus 1, so that zero is the largest
  unsigned large_count[COUNTS] = {};         // two 16-bit counters in one
  unsigned low = 0;                          // bits of the low slices
  float scale[LINES];
  const auto large = S::pair(plan.large, plan.large);

  auto read = [&](float(&to)[CHUNKS][8], int piece) {
    const int64_t from = int64_t{piece} * PIECE;
    if (x.by16 && line0 + SPLIT_LINES <= x.lines && from + PIECE <= plan.k)
      read_piece<true>(to, x, at, line0, from, plan.k);
    else read_piece<false>(to, x, at, line0, from, plan.k);
  };
  auto measure = [&] {
#pragma unroll
    for (int g = 0; g < CHUNKS; ++g)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const unsigned doubled = __float_as_uint(v[g][j]) << 1;
        own[Share::index(g, j)] = max(own[Share::index(g, j)], doubled);
        smallest = min(smallest, doubled - 1);
      }
  };
  auto gather_largest = [&](unsigned(&largest)[SPLIT_LINES]) {
    unsigned all[LINES];
#pragma unroll
    for (int i = 0; i < LINES; ++i) all[i] = own[i];
    int i;
    const unsigned same = reduce_lines<Share::SHARED>(all, i, [](unsigned a, unsigned b) { return max(a, b); });
    if ((at.t & same) == 0) atomicMax(&largest[at.line(i)], all[0]);
    __syncthreads();
  };
  auto take_scales = [&](const unsigned(&largest)[SPLIT_LINES], int headroom) {
#pragma unroll
    for (int i = 0; i < LINES; ++i) scale[i] = power_of_two(exponent_for(largest[at.line(i)], S::TOP) - headroom);
  };
  auto write = [&](int piece) {
    const int blocks_before = piece * (PIECE / SLICE_BLOCK);
    const unsigned k_left = static_cast<unsigned>(plan.k_blocks - blocks_before) * SLICE_BLOCK;
    char* const to_piece = slices + int64_t{blocks_before} * BLOCK_BYTES<S>;
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
          if (k >= k_left) continue;
          char* const to = to_piece + k / SLICE_BLOCK * BLOCK_BYTES<S> + at.place_of_pair(g * 4 + i, quarter);
#pragma unroll
          for (int s = 0; s < S::COUNT; ++s) *reinterpret_cast<typename S::Pair*>(to + s * SLICE_BYTES) = cut[s][i];
        }
      } else {
        if (at.k(g) >= k_left) continue;
        char* const to = to_piece + at.k(g) / SLICE_BLOCK * BLOCK_BYTES<S> + at.place(g, quarter);
#pragma unroll
        for (int s = 0; s < S::COUNT; ++s)
          *reinterpret_cast<uint4*>(to + s * SLICE_BYTES) = *reinterpret_cast<const uint4*>(cut[s]);
      }
    }
  };

  int headroom = LONG ? 4 : 0;
  read(v, 0);
  if constexpr (!LONG) {
    measure();
    gather_largest(shared.largest[0]);
    take_scales(shared.largest[0], headroom);
    write(0);
  } else {
    float next[CHUNKS][8];
    read(next, 1);
    measure();
    gather_largest(shared.largest[0]);
    take_scales(shared.largest[0], headroom);
    for (int piece = 0;;) {
      write(piece);
      if (++piece == pieces) break;
#pragma unroll
      for (int i = 0; i < CHUNKS * 8; ++i) v[i / 8][i % 8] = next[i / 8][i % 8];
      if (piece + 1 < pieces) read(next, piece + 1);
      measure();
    }
    gather_largest(shared.largest[1]);
    bool left = false;
    if (at.t < SPLIT_LINES) {
      const int e = exponent_for(shared.largest[0][at.t], S::TOP) - headroom;
      const int exact = exponent_for(shared.largest[1][at.t], S::TOP);
      left = shared.largest[1][at.t] != 0 && (exact < e || exact > e + headroom);
    }
    if (__syncthreads_or(left)) {
      headroom = 0;
      take_scales(shared.largest[1], headroom);
      for (unsigned& count : large_count) count = 0;
      for (int piece = 0; piece < pieces; ++piece) {
        read(v, piece);
        write(piece);
      }
    }
  }

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
  unsigned flags = __syncthreads_or(any_small) ? GUARD_SMALL : 0;
  if (at.t >= 32) return;
  if (shared.low) flags |= IS_B ? GUARD_LOW_B : GUARD_LOW_A;
  unsigned not_large = 0;
  if (at.t < SPLIT_LINES && line0 + at.t < x.lines) {
    const unsigned largest = shared.largest[LONG ? 1 : 0][at.t];
    const unsigned scaled_by = shared.largest[headroom == 0 && LONG ? 1 : 0][at.t];
    const int e = exponent_for(scaled_by, S::TOP) - headroom;
    if (largest != 0) {
      if (largest >= 0xff000000u) flags |= GUARD_NOT_FINITE;
      if (abs(e) > NARROW) flags |= GUARD_WIDE;
      not_large = static_cast<unsigned>(plan.k) - shared.large_count[at.t];
    }
    x.exponents[line0 + at.t] = e;
  }
  not_large = __reduce_max_sync(0xffffffffu, not_large);
  flags = __reduce_or_sync(0xffffffffu, flags);
  if (at.t == 0) *word = flags | min(not_large, GUARD_COUNT);
}

// LONG: k > 1024. There a thread has registers for the piece that comes next.
template <class S, bool LONG, class Shape, int RESIDENT>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    sliced_split_kernel(const __grid_constant__ SplitPlan plan) {
  __shared__ SplitShared shared;
  if (plan.early) release_next();
  ptx::touch(plan);
  wait_for_previous();
  if (plan.before) {
    const unsigned verdict = *plan.before;
    if (!(verdict & VERDICT_REFUSED) || verdict & VERDICT_NOT_FINITE) return;
  }
  for (unsigned block = blockIdx.x; block < plan.groups; block += gridDim.x) {
    if (threadIdx.x == 0) shared.low = 0;
    if (threadIdx.x < SPLIT_LINES)
      shared.largest[0][threadIdx.x] = shared.largest[1][threadIdx.x] = shared.large_count[threadIdx.x] = 0;
    __syncthreads();
    if (block < plan.a_groups) {
      unsigned* const word = plan.a.words + block;
      if (plan.a.k_contiguous) split_group<S, Shape, false, true, LONG>(plan, plan.a, block, word, shared);
      else split_group<S, Shape, false, false, LONG>(plan, plan.a, block, word, shared);
    } else {
      const unsigned group = block - plan.a_groups;
      unsigned* const word = plan.b.words + group;
      if (plan.b.k_contiguous) split_group<S, Shape, true, true, LONG>(plan, plan.b, group, word, shared);
      else split_group<S, Shape, true, false, LONG>(plan, plan.b, group, word, shared);
    }
  }
}

}  // namespace fl
