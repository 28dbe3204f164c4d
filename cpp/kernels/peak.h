// The loop that measures the FMA peak of a core (core/peak_loop.h): independent chains in three quarters of the
// registers.
#pragma once

#include <stdint.h>

namespace fl {
namespace {

template <class Simd>
int64_t peak_loop(int64_t rounds) {
  using V = typename Simd::V;
  constexpr int chains = Simd::registers / 4 * 3;
  V acc[chains], x = Simd::set1(0.999f), y = Simd::set1(0.001f);
  asm volatile("" : "+m"(x), "+m"(y));
#pragma GCC unroll 24                                              // or the array lives in memory
  for (int i = 0; i < chains; ++i) acc[i] = Simd::set1(float(i));  // or chains that are the same become one
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int i = 0; i < chains; ++i) Simd::fma(acc[i], x, y);
  }
  V sum = acc[0];
#pragma GCC unroll 24
  for (int i = 1; i < chains; ++i) sum = Simd::add(sum, acc[i]);
  asm volatile("" : : "m"(sum));
  return 2 * Simd::W * chains;
}

}  // namespace
}  // namespace fl
