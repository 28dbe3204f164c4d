// The guard's verdict on a whole product, from the words of the split pass: may two slices be used?
#pragma once

#include "fp16x2_split.cuh"

namespace fl {

constexpr unsigned VERDICT_REFUSED = 1, VERDICT_WIDE = 2;

struct Guard {
  const uint4* words;      // eight for every 32 lines: those of A, then those of B
  int a_halves, halves;    // of strips
  unsigned k, both_large;  // for how many k both factors have to be large if there are small numbers
  unsigned* verdict;
};

// For all threads of a block. The verdict is left in memory for the kernel behind.
template <int THREADS>
__device__ __forceinline__ unsigned verdict_of(const Guard& guard) {
  __shared__ unsigned not_large[2], flags;
  if (threadIdx.x == 0) not_large[0] = not_large[1] = flags = 0;
  __syncthreads();
  for (int half = threadIdx.x; half < guard.halves; half += THREADS) {
    const uint4 x = guard.words[2 * half], y = guard.words[2 * half + 1];
    const unsigned words[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
    unsigned count = 0, any = 0;
    for (const unsigned word : words) count += word & GUARD_COUNT, any |= word;
    atomicMax(&not_large[half < guard.a_halves ? 0 : 1], count);
    if (any & ~GUARD_COUNT) atomicOr(&flags, any & ~GUARD_COUNT);
  }
  __syncthreads();
  const bool few_large = uint64_t{not_large[0]} + not_large[1] + guard.both_large > guard.k;
  const bool refused = flags & GUARD_NOT_FINITE || (flags & GUARD_SMALL && few_large);
  const unsigned verdict = (refused ? VERDICT_REFUSED : 0) | (flags & GUARD_WIDE ? VERDICT_WIDE : 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) *guard.verdict = verdict;
  return verdict;
}

}  // namespace fl
