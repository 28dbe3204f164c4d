// Few lines that are long: segments of their k go to blocks of their own. One block for each 16 lines takes 2.05 us for
// each 512 k of them, which is 262 us at k = 65536 however few there are. The block of every segment guesses the scales
// from the first piece of its lines, as one block for all of k does, and leaves on record what it has found. A second
// launch reads the records and writes the range words. Where a guess has failed its blocks write their segments again,
// count anew, and the last one writes the word. So terms, exponents and words are those of one block for each 16 lines,
// to the bit.
#pragma once

#include "cuda/kernels/sgemm_accurate/split/operand_split.cuh"

namespace fl {

struct SplitSegments {
  SplitPlan split;
  unsigned segments;
  SegmentRecord* records;  // [group][segment]
  SegmentRecord* totals;   // of a group that is split again
};

constexpr unsigned SPLIT_AGAIN = 1;  // besides the flags of a record

// A block for each segment of each group, groups first: their neighbours read the same rows of a row-major B. Returns
// the group.
__device__ __forceinline__ unsigned begin_segment(const SplitSegments& plan, unsigned block, SplitShared& shared) {
  const unsigned group = block % plan.split.groups;
  if (threadIdx.x == 0) shared.segment = block / plan.split.groups;
  clear(shared, group);
  return group;
}

struct SegmentPieces {
  int from, end;
  __device__ __forceinline__ SegmentPieces(const SplitSegments& plan, unsigned segment, int piece) {
    const unsigned pieces = (static_cast<unsigned>(plan.split.k) + piece - 1) / piece;
    from = static_cast<int>(pieces * segment / plan.segments),
    end = static_cast<int>(pieces * (segment + 1) / plan.segments);
  }
};

template <class Lines>
__device__ __forceinline__ void split_segment(const SplitSegments& plan, const SplitOperand& x, unsigned low,
                                              SplitShared& shared) {
  const SegmentPieces pieces(plan, shared.segment, Lines::PIECE);
  Lines lines(plan.split, x, shared);
  lines.write_pieces(pieces.from, pieces.end, true);
  unsigned flags = 0;
  if constexpr (COUNTS_FOR_TWO<typename Lines::Terms>) flags = __syncthreads_or(lines.counts_again()) ? SPLIT_AGAIN : 0;
  flags |= lines.count();
  if (threadIdx.x >= SPLIT_LINES) return;
  const unsigned group = shared.block_of_warp(), segment = shared.segment;
  SegmentRecord& record = plan.records[group * plan.segments + segment];
  record.largest[threadIdx.x] = shared.largest[1][threadIdx.x];
  record.large_count[threadIdx.x] = shared.large_count[threadIdx.x];
  record.quarters[threadIdx.x] = shared.quarters[threadIdx.x];
  if (threadIdx.x == 0) record.flags = flags | (shared.low ? low : 0);
  if (segment != 0) return;
  const int64_t line = int64_t{lines.group()} * SPLIT_LINES + threadIdx.x;
  if (line < x.lines) x.exponents[line] = Lines::exponent(shared.largest[0][threadIdx.x], true);
  plan.totals[group].large_count[threadIdx.x] = plan.totals[group].quarters[threadIdx.x] = 0;
  if (threadIdx.x == 0) plan.totals[group].flags = plan.totals[group].arrived = 0;
}

template <class S, bool UNSWIZZLED, int HALVES>
__global__ void __launch_bounds__(LongSplit::THREADS, 2)
    split_segments_kernel(const __grid_constant__ SplitSegments plan) {
  __shared__ SplitShared shared;
  ptx::touch(plan);
  pdl_wait();
  if (!split_wanted<S>(plan.split)) return;
  const unsigned group = begin_segment(plan, blockIdx.x, shared);
  by_operand<S, LongSplit, UNSWIZZLED, HALVES>(plan.split, group, [&](auto type, const SplitOperand& x, unsigned low) {
    split_segment<typename decltype(type)::type>(plan, x, low, shared);
  });
}

// All that the segments of a group have found, to shared.largest[1], the counts and the flags that come back.
__device__ __forceinline__ unsigned read_records(const SplitSegments& plan, unsigned group, SplitShared& shared) {
  const unsigned line = threadIdx.x % SPLIT_LINES;
  unsigned largest = 0, large_count = 0, quarters = 0, flags = 0;
  for (unsigned s = threadIdx.x / SPLIT_LINES; s < plan.segments; s += blockDim.x / SPLIT_LINES) {
    const SegmentRecord& record = plan.records[group * plan.segments + s];
    largest = max(largest, __ldcg(&record.largest[line]));
    large_count += __ldcg(&record.large_count[line]), quarters += __ldcg(&record.quarters[line]);
    flags |= __ldcg(&record.flags);
  }
  if (largest) atomicMax(&shared.largest[1][line], largest);
  if (large_count) atomicAdd(&shared.large_count[line], large_count), atomicAdd(&shared.quarters[line], quarters);
  if (flags) atomicOr(&shared.low, flags);
  __syncthreads();
  return shared.low;
}

// One code for all orders and types: what it writes again is rare.
template <class S>
__device__ __forceinline__ void finish_segment(const SplitSegments& plan, unsigned block,
                                               SplitTile<SPLIT_PIECE>& tile) {
  const unsigned number = begin_segment(plan, block, tile.lines), line = threadIdx.x % SPLIT_LINES;
  const TileSplitter<S, SPLIT_PIECE, FOR_WGMMA> lines(plan.split, tile, number);
  const SplitOperand& x = lines.x;
  SplitShared& shared = tile.lines;
  const unsigned found = read_records(plan, number, shared);
  const int64_t line0 = int64_t{lines.group} * SPLIT_LINES;
  int e = 0;
  bool left = found & SPLIT_AGAIN;
  if (threadIdx.x < 32 && line0 + line < x.lines) {
    e = __ldcg(&x.exponents[line0 + line]);
    left |= guess_failed<S>(shared.largest[1][line], e);
  }
  if (!__syncthreads_or(left)) {
    if (shared.segment == 0 && threadIdx.x < 32)
      report_lines<S>(plan.split, x, lines.group, shared.largest[1][line], shared.large_count[line],
                      shared.quarters[line], e, found, COUNTS_FOR_TWO<S>);
    return;
  }

  if (threadIdx.x < SPLIT_LINES) shared.large_count[threadIdx.x] = shared.quarters[threadIdx.x] = 0;
  if (threadIdx.x == 0) shared.low = 0;
  const SegmentPieces pieces(plan, shared.segment, SPLIT_PIECE);
  lines.write_all(pieces.from * SPLIT_PIECE, pieces.end * SPLIT_PIECE);
  if (threadIdx.x >= 32) return;
  const unsigned flags = lines.flags();
  SegmentRecord& total = plan.totals[number];
  if (threadIdx.x < SPLIT_LINES) {
    atomicAdd(&total.large_count[line], shared.large_count[line]);
    atomicAdd(&total.quarters[line], shared.quarters[line]);
  }
  if (threadIdx.x == 0) atomicOr(&total.flags, flags);
  __threadfence();
  __syncwarp();
  const unsigned arrived = threadIdx.x == 0 ? atomicAdd(&total.arrived, 1) : 0;
  if (__shfl_sync(0xffffffffu, arrived, 0) + 1 != plan.segments) return;
  __threadfence();
  report_lines<S>(plan.split, x, lines.group, shared.largest[1][line], __ldcg(&total.large_count[line]),
                  __ldcg(&total.quarters[line]), exponent_for(shared.largest[1][line], S::TOP), __ldcg(&total.flags),
                  false);
}

template <class S>
__global__ void __launch_bounds__(LongSplit::THREADS, 2)
    finish_segments_kernel(const __grid_constant__ SplitSegments plan) {
  __shared__ SplitTile<SPLIT_PIECE> tile;
  if (plan.split.early) pdl_launch_next();
  ptx::touch(plan);
  pdl_wait();
  if (split_wanted<S>(plan.split)) finish_segment<S>(plan, blockIdx.x, tile);
}

}  // namespace fl
