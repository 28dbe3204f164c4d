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

// Four numbers of each of four lanes, which differ in the bits LANES and 2 * LANES: number i of lane j becomes number j
// of lane i.
template <int LANES>
__device__ __forceinline__ void transpose_fours(float* x) {
  exchange<LANES>(x[0], x[1]), exchange<LANES>(x[2], x[3]);
  exchange<2 * LANES>(x[0], x[2]), exchange<2 * LANES>(x[1], x[3]);
}

}  // namespace fl
