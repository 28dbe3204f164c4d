// The float32 FMA peak of this machine's cores, measured: what CPU tables quote percentages of.
#pragma once

#include <cstdint>

#include "core/export.h"

namespace fl {

// GFLOP/s of `threads` threads that do nothing but independent FMAs, best of a few runs of some milliseconds.
FL_EXPORT double cpu_peak_gflops(int threads);

}  // namespace fl
