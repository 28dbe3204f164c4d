// The range check: may a product be computed from these terms?
//
// The split pass leaves a word for each 16 lines (docs/accuracy.md): how many numbers of the worst line are not large,
// whether some are so small that the terms cannot hold them, and NaN or Inf. Every product reduces these words to one
// status, which the kernels behind it read: no word goes to the host.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/common/ptx.cuh"
#include "plan/accurate/range_bound.h"

namespace fl {

// The bits of a range word. Those below count the numbers of the worst line that are not large.
constexpr unsigned RANGE_SMALL = 1u << 31, RANGE_NOT_FINITE = 1u << 30, RANGE_WIDE = 1u << 29;
constexpr unsigned RANGE_LOW_A = 1u << 28, RANGE_LOW_B = 1u << 27;  // numbers of more than eleven bits
constexpr unsigned RANGE_TALL = 1u << 26;                           // see RangeBound
constexpr unsigned RANGE_COUNT = RANGE_TALL - 1;
// Scales within 2^+-60 are applied in one step after the product, others in two.
constexpr int NARROW = 60;

struct RangeCheck {
  const unsigned *a_words, *b_words;  // range words, one for each 16 lines
  int a_groups, groups;               // of 16 lines: of A, of both
  unsigned k, both_large;             // for how many k both factors have to be large if there are small numbers
  unsigned* status;                   // for the kernels behind
  const unsigned* previous;           // the status of the terms that were tried before these, if any
  bool small_if_tall;                 // whether small numbers count in tall lines alone
  unsigned* expected;                 // of two terms behind three: set to zero if they are not rejected
  // Of three terms before two: what is known of two, words of which none is stricter than the true one.
  const unsigned* words_of_two;
  unsigned both_large_of_two;

  __device__ __forceinline__ RangeCheck of_two() const {
    const unsigned* const of_b = words_of_two + (b_words == a_words ? 0 : a_groups);  // or those of A, of a triangle
    return {words_of_two, of_b, a_groups, groups, k, both_large_of_two};
  }
};

struct RangeShared {
  unsigned not_large[2], flags, status;
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
  unsigned count[2] = {}, any = 0;
  for (int group = threadIdx.x - FIRST; group < check.groups; group += THREADS - FIRST) {
    const bool of_a = group < check.a_groups;
    const unsigned word = of_a ? check.a_words[group] : check.b_words[group - check.a_groups];
    unsigned& most = count[of_a ? 0 : 1];
    most = max(most, word & RANGE_COUNT);
    any |= word & ~RANGE_COUNT;
  }
  for (int operand = 0; operand < 2; ++operand)
    if (count[operand]) atomicMax(&shared.not_large[operand], count[operand]);
  if (any) atomicOr(&shared.flags, any);
}

// After a barrier behind reduce_range_words.
__device__ __forceinline__ unsigned status_of(const RangeCheck& check, const RangeShared& shared) {
  const bool few_large = uint64_t{shared.not_large[0]} + shared.not_large[1] + check.both_large > check.k;
  unsigned status = shared.flags & RANGE_WIDE ? STATUS_WIDE : 0;
  constexpr unsigned LOW = RANGE_LOW_A | RANGE_LOW_B;
  if ((shared.flags & LOW) == LOW) status |= STATUS_COMPENSATE;
  if (shared.flags & RANGE_NOT_FINITE) status |= STATUS_REJECTED | STATUS_NOT_FINITE;
  const bool small = shared.flags & RANGE_SMALL && (shared.flags & RANGE_TALL || !check.small_if_tall);
  if (small && few_large) status |= STATUS_REJECTED;
  return status;
}

}  // namespace fl
