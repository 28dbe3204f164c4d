// Which rows of the kernel table this machine can run, and why not.
#pragma once

#include <string>

#include "table/registry.h"

namespace fl {

FL_EXPORT const char* needs_name(Needs needs);  // the name users see
FL_EXPORT bool available(Needs needs);          // on the CUDA side: on at least one device
FL_EXPORT std::string why_not(Needs needs);     // "" if available
bool available_on(Needs needs, int device);     // on that CUDA device: the hardware, and code with such rows
FL_EXPORT std::string why_not_on(Needs needs, int device);  // "" if available
FL_EXPORT std::string code_missing_on(int device);  // why it lacks rows that its hardware could run; "" if it has all
std::string compiled_code_on(int device);  // that the driver compiles what the device runs; "" where it does not
void require_code(int device);             // for a call: asks what code the device runs; CudaError if none

// Why dispatch passes a row by on a device that can run it, until `fastlinalg tune` has checked and timed it there;
// nullptr if it may take it. By name it runs all the same.
//
// Nobody has run code for sm_90 on another capability than 9.0. What needs no more than 8.0 has been run on an H200 as
// code for that target, and counts as measured everywhere. Rows that take three products of half precision for one of
// float32, other than Hopper's own, are passed by where tensor_cores_pay() does not say that they gain anything.
const char* passed_over_on(Needs needs, const Traits& traits, int device);

// The same of any device: `hardware` is its compute capability, whatever it pretends to be, and `wgmma` says whether it
// runs Hopper's own rows.
FL_EXPORT const char* passed_over(Needs needs, const Traits& traits, const DeviceSpec& spec, int hardware, bool wgmma);
// Whether three products of half precision and the split of the operands are expected to take less than one product in
// float32, by the rates of the device. Not where a capability is unknown and the tensor rate with it.
FL_EXPORT bool tensor_cores_pay(const DeviceSpec& spec);

// FASTLINALG_CPU=baseline|avx2|avx512|amx|neon caps the instruction sets that may be used: tests reach every path.
FL_EXPORT std::string ignored_cpu_cap();  // why it says nothing; "" if it is unset or one of these

// GFLOP/s of `threads` threads that do nothing but independent FMAs, best of a few runs of some milliseconds.
FL_EXPORT double cpu_peak_gflops(int threads);

}  // namespace fl
