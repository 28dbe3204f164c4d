#include "run/inspection.h"

#include <cstdlib>
#include <utility>

#include "core/errors.h"
#include "core/operations.h"
#include "device/device_info.h"
#include "device/hardware.h"
#include "device/pretended.h"
#include "dispatch/dispatch.h"
#include "run/placement.h"
#include "runtime/threading.h"

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

std::vector<std::string> ignored_settings() {
  std::vector<std::string> all;
  for (const std::string& ignored : {ignored_num_threads(), ignored_cpu_cap()})
    if (!ignored.empty()) all.push_back(ignored);
  return all;
}

std::vector<std::string> ignored_device_settings() {
  std::vector<std::string> all;
  if (!std::getenv("FASTLINALG_COMPUTE_CAPABILITY")) return all;
  const auto add = [&](const std::string& ignored) {
    if (!ignored.empty()) all.push_back(ignored);
  };
  const int devices = cuda::device_count();
  for (int i = 0; i < devices; ++i) add(cuda::device_info(i).ignored);
  if (devices == 0) add(unreadable_capability());
  return all;
}

std::vector<std::string> unusable_settings() {
  std::vector<std::string> all = ignored_settings();
  for (std::string& ignored : ignored_device_settings()) all.push_back(std::move(ignored));
  try {
    environment_device();
  } catch (const InvalidValue& error) {
    all.push_back(error.what());
  }
  return all;
}

#define FL_INSTANTIATE(Args) template KernelState state_of(const Kernel<Args>&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
