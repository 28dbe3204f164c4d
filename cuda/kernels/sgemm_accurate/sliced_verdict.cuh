// The guard's verdict on a whole product, from the words of the split pass: may these slices be used?
#pragma once

#include "cuda/kernels/sgemm_accurate/sliced_split.cuh"

namespace fl {

struct Guard {
  const unsigned *a_words, *b_words;  // one for each 16 lines
  int a_groups, groups;               // of lines: of A, of both
  unsigned k, both_large;             // for how many k both factors have to be large if there are small numbers
  unsigned* verdict;                  // for the kernels behind
  const unsigned* before;             // the verdict on slices that were tried before, if any
};

struct VerdictShared {
  unsigned not_large[2], flags, verdict;
};

// Whether these slices are still wanted.
__device__ __forceinline__ bool wanted(const Guard& guard) {
  if (!guard.before) return true;
  const unsigned before = *guard.before;
  if (before & VERDICT_REFUSED && !(before & VERDICT_NOT_FINITE)) return true;
  // No number of slices can hold what is not finite.
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *guard.verdict = before & VERDICT_REFUSED ? VERDICT_REFUSED | VERDICT_NOT_FINITE : VERDICT_DONE;
  return false;
}

// By the threads from `FIRST` on of a block; `shared` has been zeroed.
template <int FIRST, int THREADS>
__device__ __forceinline__ void collect_words(const Guard& guard, VerdictShared& shared) {
  if (int(threadIdx.x) < FIRST) return;
  unsigned count[2] = {}, any = 0;
  for (int group = threadIdx.x - FIRST; group < guard.groups; group += THREADS - FIRST) {
    const bool of_a = group < guard.a_groups;
    const unsigned word = of_a ? guard.a_words[group] : guard.b_words[group - guard.a_groups];
    unsigned& most = count[of_a ? 0 : 1];
    most = max(most, word & GUARD_COUNT);
    any |= word & ~GUARD_COUNT;
  }
  for (int operand = 0; operand < 2; ++operand)
    if (count[operand]) atomicMax(&shared.not_large[operand], count[operand]);
  if (any) atomicOr(&shared.flags, any);
}

// After a barrier.
__device__ __forceinline__ unsigned verdict_of(const Guard& guard, const VerdictShared& shared) {
  const bool few_large = uint64_t{shared.not_large[0]} + shared.not_large[1] + guard.both_large > guard.k;
  unsigned verdict = shared.flags & GUARD_WIDE ? VERDICT_WIDE : 0;
  constexpr unsigned LOW = GUARD_LOW_A | GUARD_LOW_B;
  if ((shared.flags & LOW) == LOW) verdict |= VERDICT_GIVE_BACK;
  if (shared.flags & GUARD_NOT_FINITE) verdict |= VERDICT_REFUSED | VERDICT_NOT_FINITE;
  if (shared.flags & GUARD_SMALL && few_large) verdict |= VERDICT_REFUSED;
  return verdict;
}

// What a block of 64 k is multiplied by when it is added. The tensor cores truncate: sums of positive products of two
// fp16 slices lose 3 to 3.7 u on average. Two of these are given back, and four in every other block, since no float
// gives three; where both operands have low slices: otherwise the products have fewer bits, and may be exact.
template <class S>
struct GivenBack {
  unsigned bits, other;  // of 1 + 2u, or of 1; what makes 1 + 4u of it and back
  __device__ __forceinline__ explicit GivenBack(unsigned verdict)
      : bits(S::KIND == Slices::fp16x2 && verdict & VERDICT_GIVE_BACK ? 0x3f800001u : 0x3f800000u),
        other(bits & 1 ? 3 : 0) {}
  __device__ __forceinline__ float of(int step) const { return __uint_as_float(bits + (bits & step & 1)); }
  // Or from step to step, where the number of the step would cost the loop its unrolling.
  __device__ __forceinline__ float now() const { return __uint_as_float(bits); }
  __device__ __forceinline__ void next() { bits ^= other; }
};

}  // namespace fl
