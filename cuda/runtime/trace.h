// When what happened in a call on host operands, as the thread that drives it sees it: for a time line of the call.
#pragma once

#include "device/timing.h"

namespace fl::cuda {

// Collects while trace_of() runs on this thread; null otherwise.
std::vector<TraceEvent>* current_trace();
double now_us();

}  // namespace fl::cuda
