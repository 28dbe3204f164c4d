// Which rows of the kernel table this machine can run, and why not.
#pragma once

#include <string>

#include "registry.h"

namespace fl {

FL_EXPORT const char* needs_name(Needs needs);  // the name users see
FL_EXPORT bool available(Needs needs);          // on the CUDA side: on at least one device
FL_EXPORT std::string why_not(Needs needs);     // "" if available
bool available_on(Needs needs, int device);     // on that CUDA device

// FASTLINALG_CPU=baseline|avx2|avx512 caps the instruction sets that may be used, so that tests reach every path.
}  // namespace fl
