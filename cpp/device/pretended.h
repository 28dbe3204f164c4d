// FASTLINALG_COMPUTE_CAPABILITY=8.0: CUDA devices answer as ones of that compute capability, so that its kernels and
// choices can be run and timed on a newer device. What one has of the capability is pretended: instructions, shared
// memory, threads and registers. What it is stays: its name, chip, multiprocessors, clocks, rates and memory.
#pragma once

#include <string>
#include <string_view>

#include "core/device_spec.h"

namespace fl {

struct Pretended {
  DeviceSpec spec;
  std::string why;      // "FASTLINALG_COMPUTE_CAPABILITY=8.0 is set" where the spec is not the device's own
  std::string ignored;  // why the variable has no effect, where it is set and should have one
};

// What a device of that spec answers with the variable set to `text`; "" is not set. What cannot be read, and a
// capability that is newer than the device's, is ignored.
FL_EXPORT Pretended pretended(const DeviceSpec& real, std::string_view text);
Pretended pretended(const DeviceSpec& real);    // by the environment
FL_EXPORT std::string unreadable_capability();  // why the variable says nothing to any device; "" if it does

FL_EXPORT std::string capability_text(int compute_capability);  // 80 is "8.0"

}  // namespace fl
