// The range check: may a product be computed from these terms?
//
// The split pass leaves a word for each 16 lines (docs/accuracy.md): how many numbers of the worst line are not large,
// how far the large ones lie below a level, whether some are so small that the terms cannot hold them, and NaN or
// Inf. Every product reduces these words to one status, which the kernels behind it read: no word goes to the host.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/common/ptx.cuh"
#include "plan/accurate/range_bound.h"

namespace fl {

// The bits of a range word. Of the worst line, those below say which part of the numbers is not large, in units of
// 2^-10, and how many octaves the large ones lie below RangeBound::level, a mean over k in units of 2^-6, both rounded
// up; and one bit for each octave of the largest number beyond 2^RangeBound::LONG_TOP.
constexpr unsigned RANGE_SMALL = 1u << 31, RANGE_NOT_FINITE = 1u << 30, RANGE_WIDE = 1u << 29;
constexpr unsigned RANGE_LOW_A = 1u << 28, RANGE_LOW_B = 1u << 27;  // numbers of more than eleven bits
constexpr unsigned RANGE_TALL = 1u << 26;                           // see RangeBound
constexpr unsigned ALL_OF_LINE = 1 << 10, OCTAVE = 1 << 6;
constexpr unsigned RANGE_NOT_LARGE = (1 << 11) - 1, RANGE_DEPTH = RANGE_NOT_LARGE << 11, RANGE_TOP = 15 << 22;
// Scales within 2^+-60 are applied in one step after the product, others in two.
constexpr int NARROW = 60;

struct RangeCheck {
  const unsigned *a_words, *b_words;  // range words, one for each 16 lines
  int a_groups, groups;               // of 16 lines: of A, of both
  float octaves;                      // see RangeBound
  unsigned* status;                   // for the kernels behind
  const unsigned* previous;           // the status of the terms that were tried before these, if any
  bool small_if_tall;                 // whether small numbers count in tall lines alone
  unsigned* expected;                 // of two terms behind three: set to zero if they are not rejected
  // Of three terms before two: what is known of two, words of which none is stricter than the true one.
  const unsigned* words_of_two;
  float octaves_of_two;

  __device__ __forceinline__ RangeCheck of_two() const {
    const unsigned* const of_b = words_of_two + (b_words == a_words ? 0 : a_groups);  // or those of A, of a triangle
    return {words_of_two, of_b, a_groups, groups, octaves_of_two};
  }
};

struct RangeShared {
  unsigned not_large[2], depth[2], flags, status;  // of both operands
};

// Whether other terms are to compute what was rejected: none can hold what is not finite.
__device__ __forceinline__ bool out_of_range(unsigned status) {
  return status & STATUS_REJECTED && !(status & (STATUS_NOT_FINITE | STATUS_DONE));
}

// Whether these terms are needed: always, or where those tried before were out of range.
__device__ __forceinline__ bool terms_wanted(const RangeCheck& check) {
  if (!check.previous) return true;
  const unsigned previous = *check.previous;
  if (out_of_range(previous)) return true;
  if (blockIdx.x == 0 && threadIdx.x == 0) *check.status = previous & STATUS_REJECTED ? previous : STATUS_DONE;
  return false;
}

// By the threads from `FIRST` on of a block; `shared` has been zeroed.
template <int FIRST, int THREADS>
__device__ __forceinline__ void reduce_range_words(const RangeCheck& check, RangeShared& shared) {
  if (int(threadIdx.x) < FIRST) return;
  unsigned not_large[2] = {}, depth[2] = {}, any = 0;
  for (int group = threadIdx.x - FIRST; group < check.groups; group += THREADS - FIRST) {
    const bool of_a = group < check.a_groups;
    const unsigned word = of_a ? check.a_words[group] : check.b_words[group - check.a_groups];
    const int operand = of_a ? 0 : 1;
    not_large[operand] = max(not_large[operand], word & RANGE_NOT_LARGE);
    depth[operand] = max(depth[operand], word & RANGE_DEPTH);
    any |= word & ~(RANGE_NOT_LARGE | RANGE_DEPTH);
  }
  any = ptx::warp_or(any);
  for (int operand = 0; operand < 2; ++operand)
    not_large[operand] = ptx::warp_max(not_large[operand]), depth[operand] = ptx::warp_max(depth[operand]);
  if (threadIdx.x % 32 != 0) return;
  for (int operand = 0; operand < 2; ++operand) {
    if (not_large[operand]) atomicMax(&shared.not_large[operand], not_large[operand]);
    if (depth[operand]) atomicMax(&shared.depth[operand], depth[operand]);
  }
  if (any) atomicOr(&shared.flags, any);
}

// Whether small numbers may be too much for some element of C: of the places k those are left where both factors are
// large, and there their products are as large as the mean of the octaves says.
__device__ __forceinline__ bool small_numbers_count(const RangeCheck& check, const RangeShared& shared) {
  const int not_large = shared.not_large[0] + shared.not_large[1], left = ALL_OF_LINE - not_large;
  if (left <= 0) return true;
  const float octaves = (shared.depth[0] + shared.depth[1]) / (RANGE_NOT_LARGE + 1) * (float{ALL_OF_LINE} / OCTAVE);
  const int top = RangeBound::LONG_TOP + __popc(shared.flags & RANGE_TOP);
  return octaves / left + log2f(float(not_large) / left) + top > check.octaves;
}

// After a barrier behind reduce_range_words.
__device__ __forceinline__ unsigned status_of(const RangeCheck& check, const RangeShared& shared) {
  unsigned status = shared.flags & RANGE_WIDE ? STATUS_WIDE : 0;
  constexpr unsigned LOW = RANGE_LOW_A | RANGE_LOW_B;
  if ((shared.flags & LOW) == LOW) status |= STATUS_COMPENSATE;
  if (shared.flags & RANGE_NOT_FINITE) status |= STATUS_REJECTED | STATUS_NOT_FINITE;
  const bool small = shared.flags & RANGE_SMALL && (shared.flags & RANGE_TALL || !check.small_if_tall);
  if (small && small_numbers_count(check, shared)) status |= STATUS_REJECTED;
  return status;
}

}  // namespace fl
