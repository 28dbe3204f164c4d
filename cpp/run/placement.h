// Where a call runs, as far as the call itself says it.
#pragma once

#include <optional>
#include <string>

#include "dispatch/dispatch.h"
#include "run/call_options.h"

namespace fl {

struct EnvironmentDevice {
  std::string text;
  Device device;
};
// FASTLINALG_DEVICE as it was when it was first asked for; InvalidValue if it names no device.
const std::optional<EnvironmentDevice>& environment_device();

// One device, the CPU or several devices. The devices are there, "cuda:all" is a list of them, and several are alike in
// what kernels and their costs go by. Memory of a device and streams are those of one device.
Device resolve_device(Device device, const CallOptions& options);
void require_one_device(Device device, const CallOptions& options);

// Where a call on these operands runs: on the device that it names, that its kernel needs or that the environment says.
// `automatic` leaves it to the costs.
template <class Args>
Device placement(const CallOptions& options) {
  Device device = options.device;
  if (options.device_memory || device.kind != Device::automatic) return resolve_device(device, options);
  if (!options.kernel.empty())
    device.kind = on_cuda(row_named<Args>(options.kernel).needs) ? Device::cuda : Device::cpu;
  else if (const auto& environment = environment_device()) device = environment->device;
  return resolve_device(device, options);
}

}  // namespace fl
