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
// For the range check (range_check.cuh) one word for 16 lines says what the terms cannot hold.
//
// Clusters of eight blocks that share 64 lines took 12.5 us instead of 10.3 at 2048 and 26 instead of 23 at 4096, k =
// 1024, but 276 instead of 350 at k = 8192: there one block of a multiprocessor does not keep memory busy.
#pragma once

#include <type_traits>

#include "cuda/kernels/sgemm_accurate/split/tile_splitter.cuh"

namespace fl {

// Panels of another width than 64 columns, and operands of 16 bits, are for products that no code but that of 9.0a has
// (wgmma/).
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool FOR_WGMMA = true;
#else
constexpr bool FOR_WGMMA = false;
#endif

// Calls split(type of LineSplitter, operand, flag of its low terms). HALVES: how many operands are in 16 bits, A first.
template <class S, class Shape, bool UNSWIZZLED, int HALVES, class Split>
__device__ __forceinline__ void by_operand(const SplitPlan& plan, unsigned group, Split&& split) {
  if constexpr ((UNSWIZZLED || HALVES > 0) && !FOR_WGMMA) {
    not_for_this_target();
  } else {
    constexpr bool A_HALVES = HALVES > 0, B_HALVES = HALVES > 1;
    const bool is_b = group >= plan.a_groups;
    const SplitOperand& x = is_b ? plan.b : plan.a;
    if (!is_b) {
      if (x.k_contiguous)
        split(std::type_identity<LineSplitter<S, A_HALVES, Shape, false, true, false>>{}, plan.a, RANGE_LOW_A);
      else split(std::type_identity<LineSplitter<S, A_HALVES, Shape, false, false, false>>{}, plan.a, RANGE_LOW_A);
    } else {
      if (x.k_contiguous)
        split(std::type_identity<LineSplitter<S, B_HALVES, Shape, true, true, UNSWIZZLED>>{}, plan.b, RANGE_LOW_B);
      else split(std::type_identity<LineSplitter<S, B_HALVES, Shape, true, false, UNSWIZZLED>>{}, plan.b, RANGE_LOW_B);
    }
  }
}

template <class S, class Lines, bool LONG>
__device__ __forceinline__ void split_group(const SplitPlan& plan, const SplitOperand& x, unsigned low,
                                            SplitShared& shared) {
  Lines lines(plan, x, shared);
  bool guessed = false;
  if constexpr (!LONG) {
    for (;; lines.of_two = false) {
      lines.read_now(0);
      lines.measure();
      lines.gather_largest(shared.largest[0]);
      lines.take_scales(shared.largest[0], 0);
      lines.write(0);
      if (!COUNTS_FOR_TWO<S> || !lines.of_two || !__syncthreads_or(lines.counts_again())) break;
      lines.clear_counts();
    }
  } else {
    const int pieces = static_cast<int>(ceil_div(plan.k, Lines::PIECE));
    for (guessed = true;; guessed = false) {
      lines.write_pieces(0, pieces, guessed);
      if (!guessed) break;
      bool left = lines.counts_again();
      if (threadIdx.x < SPLIT_LINES)
        left |= guess_failed<S>(shared.largest[1][threadIdx.x], lines.exponent(shared.largest[0][threadIdx.x], true));
      if (!__syncthreads_or(left)) break;
      if (threadIdx.x < SPLIT_LINES) shared.large_count[threadIdx.x] = shared.quarters[threadIdx.x] = 0;
      __syncthreads();
    }
  }

  const unsigned flags = lines.template count<true, !LONG>();
  if (threadIdx.x >= 32) return;
  const unsigned line = threadIdx.x % SPLIT_LINES, scaled_by = shared.largest[LONG && !guessed ? 1 : 0][line];
  report_lines<S>(plan, x, lines.group(), shared.largest[LONG ? 1 : 0][line], shared.large_count[line],
                  shared.quarters[line], Lines::exponent(scaled_by, guessed), flags | (shared.low ? low : 0),
                  lines.of_two);
}

// LONG: k > 1024. There a thread has registers for the piece that comes next.
template <class S, bool LONG, class Shape, int RESIDENT, bool UNSWIZZLED, int HALVES>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    operand_split_kernel(const __grid_constant__ SplitPlan plan) {
  __shared__ SplitShared shared;
  if (plan.early) pdl_launch_next();
  ptx::touch(plan);
  if (!plan.beside) pdl_wait();
  unsigned block = split_wanted<S>(plan) ? blockIdx.x : plan.groups;
  for (; block < plan.groups; block = shared.block_of_warp() + gridDim.x) {
    clear(shared, block);
    by_operand<S, Shape, UNSWIZZLED, HALVES>(plan, block, [&](auto type, const SplitOperand& x, unsigned low) {
      split_group<S, typename decltype(type)::type, LONG>(plan, x, low, shared);
    });
  }
  if (plan.beside) pdl_wait();
}

// Of operands in 16 bits, where few calls come.
template <class S>
__global__ void __launch_bounds__(LongSplit::THREADS, 2) split_by_tile_kernel(const __grid_constant__ SplitPlan plan) {
  if constexpr (!FOR_WGMMA) {
    not_for_this_target();
  } else {
    __shared__ SplitTile<SPLIT_PIECE> tile;
    ptx::touch(plan);
    pdl_wait();
    if (!split_wanted<S>(plan)) return;
    for (unsigned number = blockIdx.x; number < plan.groups; number += gridDim.x)
      split_by_tile<S, SPLIT_PIECE, true>(plan, number, tile);
  }
}

}  // namespace fl
