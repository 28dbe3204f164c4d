// What users are told of a row of the kernel table, besides what stands in it, and of the machine.
#pragma once

#include <string>
#include <vector>

#include "table/registry.h"

namespace fl {

struct KernelState {
  std::string reason;       // why it cannot run here; "" if it can
  std::string passed_over;  // why dispatch leaves it to its name on every device that can run it; "" if not
  std::vector<const char*> measured_on;  // names of chips
};
template <class Args>
FL_EXPORT KernelState state_of(const Kernel<Args>& kernel);

FL_EXPORT const char* instruction_set();  // that CPU kernels use: "avx512f", or "baseline"
// Why devices cannot run all that their hardware could; "" if they can.
FL_EXPORT std::string missing_code();

constexpr const char* side_of(Needs needs) { return on_cuda(needs) ? "cuda" : "cpu"; }
constexpr const char* terms_name(Terms terms) {
  return terms == Terms::fp16x2 ? "fp16x2" : terms == Terms::bf16x6 ? "bf16x6" : "";
}

// Environment variables that are set and mean nothing, or not what they say: a sentence for each.
FL_EXPORT std::vector<std::string> ignored_settings();         // of any call
FL_EXPORT std::vector<std::string> ignored_device_settings();  // of calls that may use a GPU; looks for devices
FL_EXPORT std::vector<std::string> unusable_settings();        // both, and FASTLINALG_DEVICE, which fails the call

}  // namespace fl
