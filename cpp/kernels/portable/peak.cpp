// Multiply-adds on four-float vectors, the width every 64-bit CPU has.
#include "core/peak_loop.h"

namespace fl {

int64_t peak_loop_portable(int64_t rounds) {
  typedef float V __attribute__((vector_size(16)));
  constexpr int chains = 12;
  V acc[chains];
#pragma GCC unroll 12  // or the array lives in memory
  for (int i = 0; i < chains; ++i) acc[i] = V{} + float(i);
  V x = V{} + 0.999f, y = V{} + 0.001f;
  asm volatile("" : "+m"(x), "+m"(y));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) acc[i] = acc[i] * x + y;
  }
  V sum = acc[0];
#pragma GCC unroll 12
  for (int i = 1; i < chains; ++i) sum += acc[i];
  asm volatile("" : : "m"(sum));
  return 2 * 4 * chains;
}

}  // namespace fl
