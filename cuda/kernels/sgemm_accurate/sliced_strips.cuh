// The split pass of few lines that are long: strips of their k go to blocks of their own. One block to 16 lines takes
// 2.05 us for each 512 k of them, which is 262 us at k = 65536 however few there are.
//
// Every strip guesses the scales from the first piece of its lines, as one block for all of k does, and leaves on
// record what it has found. A second launch reads the records and writes the words of the guard. Where a guess has
// failed its blocks write their strips again, count anew, and the last one writes the word. So slices, exponents and
// words are those of one block for each 16 lines, to the bit.
#pragma once

#include "cuda/kernels/sgemm_accurate/sliced_split.cuh"

namespace fl {

struct SplitStrips {
  SplitPlan split;
  unsigned strips;
  StripRecord* records;  // [group][strip]
  StripRecord* totals;   // of a group that is split again
};

struct StripPieces {
  int from, end;
  __device__ __forceinline__ StripPieces(const SplitStrips& plan, unsigned strip, int piece) {
    const unsigned pieces = (static_cast<unsigned>(plan.split.k) + piece - 1) / piece;
    from = static_cast<int>(pieces * strip / plan.strips), end = static_cast<int>(pieces * (strip + 1) / plan.strips);
  }
};

template <class Lines>
__device__ __forceinline__ void split_strip(const SplitStrips& plan, const SplitOperand& x, unsigned in_operand,
                                            unsigned low, unsigned group, unsigned strip, SplitShared& shared) {
  const StripPieces pieces(plan, strip, Lines::PIECE);
  Lines lines(plan.split, x, in_operand, shared);
  lines.write_by_guess(pieces.from, pieces.end);
  const unsigned flags = lines.count();
  if (threadIdx.x >= SPLIT_LINES) return;
  StripRecord& record = plan.records[group * plan.strips + strip];
  record.largest[threadIdx.x] = shared.largest[1][threadIdx.x];
  record.large_count[threadIdx.x] = shared.large_count[threadIdx.x];
  if (threadIdx.x == 0) record.flags = flags | (shared.low ? low : 0);
  if (strip != 0) return;
  if (lines.line0 + threadIdx.x < x.lines)
    x.exponents[lines.line0 + threadIdx.x] = Lines::exponent(shared.largest[0][threadIdx.x], true);
  plan.totals[group].large_count[threadIdx.x] = 0;
  if (threadIdx.x == 0) plan.totals[group].flags = plan.totals[group].arrived = 0;
}

// A block for each strip of each group, groups first: their neighbours read the same rows of a row-major B. Calls
// work(type of LinesSplit, operand, number of the group in it, flag of its low slices, group, strip).
template <class S, class Shape, bool PACKED, class Work>
__device__ __forceinline__ void on_strip(const SplitStrips& plan, SplitShared& shared, Work&& work) {
  ptx::touch(plan);
  pdl_wait();
  if (!split_wanted(plan.split)) return;
  const unsigned group = blockIdx.x % plan.split.groups, strip = blockIdx.x / plan.split.groups;
  clear(shared);
  by_operand<S, Shape, PACKED>(plan.split, group,
                               [&](auto type, const SplitOperand& x, unsigned in_operand, unsigned low) {
                                 work(type, x, in_operand, low, group, strip);
                               });
}

template <class S, class Shape, int RESIDENT, bool PACKED>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    split_strips_kernel(const __grid_constant__ SplitStrips plan) {
  __shared__ SplitShared shared;
  on_strip<S, Shape, PACKED>(plan, shared, [&](auto type, const SplitOperand& x, auto... where) {
    split_strip<typename decltype(type)::type>(plan, x, where..., shared);
  });
}

// All that the strips of a group have found, to shared.largest[1], large_count and the flags that come back.
__device__ __forceinline__ unsigned read_records(const SplitStrips& plan, unsigned group, SplitShared& shared) {
  const unsigned line = threadIdx.x % SPLIT_LINES;
  unsigned largest = 0, large_count = 0, flags = 0;
  for (unsigned s = threadIdx.x / SPLIT_LINES; s < plan.strips; s += blockDim.x / SPLIT_LINES) {
    const StripRecord& record = plan.records[group * plan.strips + s];
    largest = max(largest, record.largest[line]), large_count += record.large_count[line], flags |= record.flags;
  }
  if (largest) atomicMax(&shared.largest[1][line], largest);
  if (large_count) atomicAdd(&shared.large_count[line], large_count);
  if (flags) atomicOr(&shared.low, flags);
  __syncthreads();
  return shared.low;
}

template <class Lines>
__device__ __forceinline__ void settle_strip(const SplitStrips& plan, const SplitOperand& x, unsigned in_operand,
                                             unsigned low, unsigned group, unsigned strip, SplitShared& shared) {
  const unsigned found = read_records(plan, group, shared), line = threadIdx.x % SPLIT_LINES;
  const int64_t line0 = int64_t{in_operand} * SPLIT_LINES;
  int e = 0;
  bool left = false;
  if (threadIdx.x < 32 && line0 + line < x.lines) {
    e = x.exponents[line0 + line];
    left = Lines::left_range(shared.largest[1][line], e);
  }
  if (!__syncthreads_or(left)) {
    if (strip != 0 || threadIdx.x >= 32) return;
    report_lines(plan.split, x, line0, shared.largest[1][line], shared.large_count[line], e, found,
                 x.words + in_operand);
    return;
  }

  if (threadIdx.x < SPLIT_LINES) shared.large_count[threadIdx.x] = 0;
  if (threadIdx.x == 0) shared.low = 0;
  __syncthreads();
  const StripPieces pieces(plan, strip, Lines::PIECE);
  Lines lines(plan.split, x, in_operand, shared);
  lines.template write_again<true>(pieces.from, pieces.end);
  const unsigned flags = lines.count();
  if (threadIdx.x >= 32) return;
  StripRecord& total = plan.totals[group];
  if (threadIdx.x < SPLIT_LINES) atomicAdd(&total.large_count[line], shared.large_count[line]);
  if (threadIdx.x == 0) atomicOr(&total.flags, flags | (shared.low ? low : 0));
  __threadfence();
  __syncwarp();
  const unsigned before = threadIdx.x == 0 ? atomicAdd(&total.arrived, 1) : 0;
  if (__shfl_sync(0xffffffffu, before, 0) + 1 != plan.strips) return;
  __threadfence();
  report_lines(plan.split, x, line0, shared.largest[1][line], __ldcg(&total.large_count[line]),
               Lines::exponent(shared.largest[1][line], false), __ldcg(&total.flags), x.words + in_operand);
}

template <class S, class Shape, int RESIDENT, bool PACKED>
__global__ void __launch_bounds__(Shape::THREADS, RESIDENT)
    settle_strips_kernel(const __grid_constant__ SplitStrips plan) {
  __shared__ SplitShared shared;
  if (plan.split.early) pdl_launch_next();
  on_strip<S, Shape, PACKED>(plan, shared, [&](auto type, const SplitOperand& x, auto... where) {
    settle_strip<typename decltype(type)::type>(plan, x, where..., shared);
  });
}

}  // namespace fl
