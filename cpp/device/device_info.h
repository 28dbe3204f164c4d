// Which CUDA devices there are. As all of cuda/ that the rest of the library sees: no CUDA header is needed to include
// this, and every function exists in a build without CUDA too (no_cuda.cpp), where there are no devices.
#pragma once

#include <cstddef>
#include <string>

#include "core/device_spec.h"
#include "core/export.h"
#include "device/loaded_code.h"

namespace fl::cuda {

struct DeviceInfo {
  int ordinal = 0;
  std::size_t memory = 0;      // bytes
  int compute_capability = 0;  // 10 * major + minor of the hardware: decides which code the driver loads
  DeviceSpec spec;             // what calls may use: FASTLINALG_COMPUTE_CAPABILITY may leave less than there is
  std::string pretended;       // "FASTLINALG_COMPUTE_CAPABILITY=8.0 is set" where it does
  std::string ignored;         // why it does not, although it is set
  LoadedCode expected_code;    // of this library, in this environment
};

struct Unavailable {  // why device_count() is 0; code is a cudaError_t
  int code = 0;
  std::string name, message;
};

// Looks at the first question and keeps the answer. Creates no context, never throws; no device is a normal state. In a
// child of fork whose parent has looked and found devices there are none: the driver cannot be used there.
FL_EXPORT int device_count();
FL_EXPORT const Unavailable& unavailable();
FL_EXPORT const DeviceInfo& device_info(int device);
FL_EXPORT int driver_version();   // 13000 = CUDA 13.0; 0 if there is none
FL_EXPORT int runtime_version();  // of the static runtime in this library; 0 in a build without CUDA
FL_EXPORT const char* built_architectures();

// The code of this library that the device runs: what is expected, until load_code() has asked the runtime. That makes
// the device's context, so it is for calls that will run there. Dispatch on a device goes by known_code().
FL_EXPORT LoadedCode known_code(int device);
void load_code(int device);

// Throws CudaError unless `device` exists and this process may use it (a child of fork may not).
FL_EXPORT void require_device(int device);

}  // namespace fl::cuda
