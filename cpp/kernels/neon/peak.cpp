// Independent FMA chains in registers; asm, so that the compiler can neither fold nor spill them.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "core/peak_loop.h"

namespace fl {

int64_t peak_loop_neon(int64_t rounds) {
  constexpr int chains = 24;  // four pipes with a latency of four cycles need sixteen
  float32x4_t acc[chains];
#pragma GCC unroll 24  // or the array lives in memory
  for (int i = 0; i < chains; ++i) acc[i] = vdupq_n_f32(0.0f);
  const float32x4_t x = vdupq_n_f32(0.999f), y = vdupq_n_f32(0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (int i = 0; i < chains; ++i) asm volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(acc[i]) : "w"(x), "w"(y));
  }
  return 2 * 4 * chains;
}

}  // namespace fl
#endif
