// What a decision about a call depends on.
#pragma once

#include <cstdint>

#include "core/call_device.h"
#include "core/operations.h"
#include "device/device_info.h"
#include "dispatch/tuning.h"
#include "table/registry.h"

namespace fl {

// Two calls with equal keys get the same answer from every rule of the kernel table: rules see addresses modulo 128
// only (rules.h). An operand that Operation<Args> does not name keeps its whole address, so that forgetting one costs
// time and no more.
template <class Args>
struct CallKey {
  CallKey() = default;
  // `asked` is the kernel that the call names, if it does.
  CallKey(const Args& call, Device device, int threads, const Kernel<Args>* asked = nullptr)
      : args(call), asked(asked), device(device), threads(threads), tuning(tuning_generation()), code(code_on(device)) {
    for_each_operand(args, [](auto& view) { view.data = reinterpret_cast<decltype(view.data)>(in_line(view.data)); });
    for (Stored& operand : args.stored) operand = {operand.element};
  }
  bool operator==(const CallKey&) const = default;

 private:
  // Choices on a device go by the code that it runs (device_info.h).
  static LoadedCode code_on(Device device) {
    return device.kind == Device::cuda ? cuda::known_code(device.ordinal) : LoadedCode{};
  }
  static uintptr_t in_line(const float* data) { return data ? 128 + reinterpret_cast<uintptr_t>(data) % 128 : 0; }

  Args args{};
  const Kernel<Args>* asked = nullptr;
  Device device{};
  int threads = 0;
  unsigned tuning = 0;
  LoadedCode code{};
};

}  // namespace fl
