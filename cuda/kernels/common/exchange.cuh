// Lanes of a warp exchange numbers.
#pragma once

namespace fl {

// Lanes whose numbers differ in the bit LANES exchange the higher number of the lower lane and the lower of the higher:
// a step of a transposition, whose other half is that bit of the places of numbers within a lane.
template <int LANES>
__device__ __forceinline__ void exchange(float& low, float& high) {
  const bool upper = threadIdx.x & LANES;
  const float got = __shfl_xor_sync(0xffffffffu, upper ? low : high, LANES);
  low = upper ? got : low, high = upper ? high : got;
}

}  // namespace fl
