// The vectors of simd.h with fused multiply-adds, each rounded once, for CPUs without the instruction: in float64,
// where a product of two float32 is exact. A sum rounded to nearest there would be rounded twice; so it is rounded to
// odd, which keeps what decides the second rounding.
#pragma once

#include "simd.h"

namespace fl {
namespace {

struct FusedSimd : Simd {
  using Narrow = FusedSimd;

  static void fma(V& acc, V x, V y) {
    const Pair low = fma_pair(half<0>(x), half<0>(y), half<0>(acc));
    const Pair high = fma_pair(half<2>(x), half<2>(y), half<2>(acc));
    acc = __builtin_shufflevector(low, high, 0, 1, 2, 3);
  }
  static void fma_scalar(V& acc, const float* x, V y) { fma(acc, set1(*x), y); }

 private:
  typedef float Pair __attribute__((vector_size(8)));
  typedef double Wide __attribute__((vector_size(16)));
  typedef int64_t Bits __attribute__((vector_size(16)));

  template <int first>
  static Wide half(V v) {
    return __builtin_convertvector(__builtin_shufflevector(v, v, first, first + 1), Wide);
  }
  static Pair fma_pair(Wide x, Wide y, Wide z) {
    const Wide product = x * y, sum = product + z, back = sum - product;
    const Wide error = (product - (sum - back)) + (z - back);  // sum + error is exact (Knuth)
    const Bits inexact = (error < 0.0) | (error > 0.0);        // not where anything is NaN or infinite
    const Bits towards_zero = (error > 0.0) ^ (sum > 0.0);
    const Bits even = (Bits(sum) & 1) - 1;
    return __builtin_convertvector(Wide(Bits(sum) + ((towards_zero | 1) & inexact & even)), Pair);
  }
};

}  // namespace
}  // namespace fl
