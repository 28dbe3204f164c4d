// When what happened in a call on host operands, as the thread that drives it sees it: for a time line of the call.
#pragma once

#include "device/device.h"

namespace fl::cuda {

// Collects while stamps_of() runs on this thread; null otherwise.
std::vector<Stamp>* current_stamps();
double now_us();

}  // namespace fl::cuda
