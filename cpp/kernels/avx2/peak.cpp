// Independent FMA chains in registers; asm, so that the compiler can neither fold nor spill them.
#if defined(__x86_64__)
#include <immintrin.h>

#include "core/peak_loop.h"

namespace fl {

int64_t peak_loop_avx2(int64_t rounds) {
  constexpr int chains = 12;
  __m256 acc[chains];
#pragma GCC unroll 12  // or the array lives in memory
  for (int i = 0; i < chains; ++i) acc[i] = _mm256_setzero_ps();
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) asm volatile("vfmadd231ps %2, %1, %0" : "+x"(acc[i]) : "x"(x), "x"(y));
  }
  return 2 * 8 * chains;
}

}  // namespace fl
#endif
