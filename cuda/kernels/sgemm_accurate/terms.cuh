// The terms whose sum stands for a scaled float32 number, and which products of terms are summed in which order: the
// small ones first, which is 2.5 times more accurate than last.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "plan/accurate/split_layout.h"

namespace fl {

struct Fp16Terms {
  static constexpr Terms KIND = Terms::fp16x2;
  static constexpr int COUNT = 2, PRODUCTS = 3;
  static constexpr int TOP = 14;  // the largest number of a line is scaled to [2^TOP, 2^(TOP + 1))
  using Pair = __half2;
  static constexpr int a_term(int product) { return product == 0 ? 1 : 0; }
  static constexpr int b_term(int product) { return product == 1 ? 1 : 0; }
  static __device__ __forceinline__ Pair pair(float x, float y) { return __floats2half2_rn(x, y); }
  static __device__ __forceinline__ float2 floats(Pair x) { return __half22float2(x); }
};

// 24 bits: exact, if the number is not below 2^-110. The exponents of float32 need the scale only to stay clear of
// overflow and underflow: 2^50 times 2^50, and sums of them.
struct Bf16Terms {
  static constexpr Terms KIND = Terms::bf16x6;
  static constexpr int COUNT = 3, PRODUCTS = 6;
  static constexpr int TOP = 50;
  using Pair = __nv_bfloat162;
  static constexpr int a_term(int product) { return product < 3 ? 2 - product : product == 3 ? 1 : 0; }
  static constexpr int b_term(int product) { return product < 3 ? product : product == 4 ? 1 : 0; }
  static __device__ __forceinline__ Pair pair(float x, float y) { return __floats2bfloat162_rn(x, y); }
  static __device__ __forceinline__ float2 floats(Pair x) { return __bfloat1622float2(x); }
};

template <Terms KIND>
using TermsOf = std::conditional_t<KIND == Terms::fp16x2, Fp16Terms, Bf16Terms>;

// Cuts two scaled numbers into pair i of each term: what the terms before it leave, rounded; of two terms the second
// times `second_scale`. Adds the bits of a second term to `low`.
template <class S>
__device__ __forceinline__ void cut_pair(float2 rest, float second_scale, typename S::Pair (&terms)[S::COUNT][4], int i,
                                         unsigned& low) {
#pragma unroll
  for (int s = 0; s < S::COUNT; ++s) {
    terms[s][i] = S::pair(rest.x, rest.y);
    const float2 rounded = S::floats(terms[s][i]);
    rest.x -= rounded.x, rest.y -= rounded.y;
    if constexpr (S::COUNT == 2) rest.x *= second_scale, rest.y *= second_scale;
  }
  low |= *reinterpret_cast<const unsigned*>(&terms[1][i]);
}

// Adds, in 16 bits each, how many numbers of a pair are large, and for those that are `sure` quarters of octaves: their
// logarithms plus 15 of two terms, how far they are below `level` of three. What is beyond `level` counts as that. Of a
// logarithm that is the exponent and two bits behind it, as log2(1 + x) is at least x from 0 to 1.
template <class S>
__device__ __forceinline__ void count_pair(typename S::Pair first, typename S::Pair large, typename S::Pair sure,
                                           typename S::Pair level, unsigned& count, unsigned& quarters) {
  const auto magnitude = __habs2(first), low = __hmin2(magnitude, level);
  const unsigned bits = reinterpret_cast<const unsigned&>(low), counted = __hge2_mask(magnitude, sure);
  count += __hge2_mask(magnitude, large) & 0x00010001u;
  if constexpr (S::COUNT == 2) quarters += (bits & counted & 0x7f007f00u) >> 8;
  else quarters += ((reinterpret_cast<const unsigned&>(level) >> 5) - (bits >> 5 & 0x03ff03ffu)) & counted;
}

// All terms of 64 lines by 64 k.
template <class S>
constexpr int BLOCK_BYTES = S::COUNT * TERM_BYTES;

// e such that the largest magnitude times 2^e lies in [2^top, 2^(top + 1)), where 2^e is a float; `doubled` is its bits
// times 2.
__device__ __forceinline__ int exponent_for(unsigned doubled, int top) {
  if (doubled == 0) return 0;
  const int biased = static_cast<int>(doubled >> 24);
  return min(top - (biased ? biased - 127 : -119 - __clz(doubled)), 127);
}
__device__ __forceinline__ float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

}  // namespace fl
