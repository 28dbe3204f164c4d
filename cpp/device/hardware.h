// Which rows of the kernel table this machine can run, and why not.
#pragma once

#include <string>

#include "table/registry.h"

namespace fl {

FL_EXPORT const char* needs_name(Needs needs);      // the name users see
FL_EXPORT bool available(Needs needs);              // on the CUDA side: on at least one device
FL_EXPORT std::string why_not(Needs needs);         // "" if available
bool available_on(Needs needs, int device);         // on that CUDA device: the hardware, and code with such rows
std::string why_not_on(Needs needs, int device);    // "" if available
FL_EXPORT std::string code_missing_on(int device);  // why it lacks rows that its hardware could run; "" if it has all
void require_code(int device);                      // for a call: asks what code the device runs; CudaError if none

// Whether dispatch may take such a row on a device that has the hardware, where `fastlinalg tune` has not measured it;
// by name it runs there all the same. Rows that
// take three products of half precision for one of float32, other than Hopper's own, pay where the tensor cores are far
// more than three times as fast as the float32 pipes (docs/accuracy.md).
bool pays_on(const Traits& traits, int device);
FL_EXPORT bool tensor_cores_pay(int compute_capability);  // 10 * major + minor

// FASTLINALG_CPU=baseline|avx2|avx512 caps the instruction sets that may be used, so that tests reach every path.
}  // namespace fl
