// The loops that measure the float32 FMA peak of a core, one per instruction set (device/cpu_peak.cpp).
#pragma once

#include <cstdint>

namespace fl {

// Each runs `rounds` rounds of independent multiply-adds in registers and returns the operations per round.
int64_t peak_loop_portable(int64_t rounds);
#if defined(__x86_64__)
int64_t peak_loop_avx2(int64_t rounds);
int64_t peak_loop_avx512(int64_t rounds);
#elif defined(__aarch64__)
int64_t peak_loop_neon(int64_t rounds);
#endif

}  // namespace fl
