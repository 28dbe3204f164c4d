// The float32 FMA peak of this machine's cores, measured: what CPU tables quote percentages of.
#pragma once

#include <cstdint>

#include "export.h"

namespace fl {

// GFLOP/s of `threads` threads that do nothing but independent FMAs, best of a few runs of some milliseconds.
FL_EXPORT double cpu_peak_gflops(int threads);

// Each runs `rounds` rounds of independent multiply-adds in registers and returns the operations per round.
int64_t peak_loop_portable(int64_t rounds);
#if defined(__x86_64__)
int64_t peak_loop_avx2(int64_t rounds);
int64_t peak_loop_avx512(int64_t rounds);
#endif

}  // namespace fl
