#include "run/kernel_state.h"

#include "core/operations.h"
#include "device/device_info.h"
#include "device/hardware.h"
#include "dispatch/dispatch.h"

namespace fl {
namespace {

template <class Args>
std::string passed_over_everywhere(const Kernel<Args>& kernel) {
  std::string found;
  for (int i = 0; on_cuda(kernel.needs) && i < cuda::device_count(); ++i) {
    const Device device{Device::cuda, i};
    if (!why_not_on(kernel.needs, i).empty()) continue;
    const char* const why = passed_over(kernel, device);
    if (!why) return "";
    found = why;
  }
  return found;
}

}  // namespace

template <class Args>
KernelState state_of(const Kernel<Args>& kernel) {
  KernelState state;
  state.reason = kernel.run ? why_not(kernel.needs) : cuda::unavailable().message;
  state.passed_over = passed_over_everywhere(kernel);
  for (int chip = 0; chip < chip_count; ++chip)
    if (was_measured(Chip(chip)) && !kernel.model.values(Chip(chip)).empty())
      state.measured_on.push_back(chip_name(Chip(chip)));
  return state;
}

const char* instruction_set() {
  const char* found = "baseline";
  for (const Needs needs : {Needs::avx2_fma, Needs::avx512f, Needs::neon})
    if (available(needs)) found = needs_name(needs);
  return found;
}

std::string missing_code() {
  std::string text;
  for (int i = 0; i < cuda::device_count(); ++i)
    if (const std::string missing = code_missing_on(i); !missing.empty() && text.find(missing) == std::string::npos)
      text += (text.empty() ? "" : "; ") + missing;
  return text;
}

#define FL_INSTANTIATE(Args) template KernelState state_of(const Kernel<Args>&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
