#include "run/placement.h"

#include <cstdlib>
#include <vector>

#include "core/errors.h"
#include "core/lazy.h"
#include "device/device_info.h"
#include "device/pretended.h"

namespace fl {
namespace {

// A plan is for all devices of a call.
void require_alike(const std::vector<int>& devices) {
  const auto kind = [](int device) {
    const DeviceSpec& spec = cuda::device_info(device).spec;
    return std::string(spec.name) + ", compute capability " + capability_text(spec.compute_capability) + ", " +
           std::to_string(spec.multiprocessors) + " multiprocessors";
  };
  const int first = devices.front();
  for (const int device : devices)
    if (kind(device) != kind(first))
      throw InvalidValue("the devices of one call have to be of one kind, and cuda:" + std::to_string(first) + " is " +
                         kind(first) + ", cuda:" + std::to_string(device) + " " + kind(device) +
                         "; list those that are");
}

// "cuda:all" as a list.
Device listed(Device device, int count) {
  if (device.set != Device::all || count == 0) return device;
  device.or_one = count > 1;
  device.set = count == 1 ? 0 : count < 64 ? (uint64_t{1} << count) - 1 : Device::all;
  return device;
}

}  // namespace

const std::optional<EnvironmentDevice>& environment_device() {
  static constinit Lazy<std::optional<EnvironmentDevice>> device;
  return device.get([]() -> std::optional<EnvironmentDevice> {
    const char* const text = std::getenv("FASTLINALG_DEVICE");
    if (!text || !*text) return std::nullopt;
    try {
      return EnvironmentDevice{text, parse_device(text)};
    } catch (const InvalidValue& error) {
      throw InvalidValue("FASTLINALG_DEVICE: " + std::string(error.what()));
    }
  });
}

Device resolve_device(Device asked, const CallOptions& options) {
  if (asked.kind != Device::cuda) return asked;
  const int count = cuda::device_count();
  const Device device = listed(asked, count);
  if (!device.set || count == 0) {
    cuda::require_device(device.ordinal);
  } else {
    const std::vector<int> devices = ordinals(device);
    for (const int each : devices) cuda::require_device(each);
    require_alike(devices);
  }
  require_one_device(device, options);
  return device;
}

void require_one_device(Device device, const CallOptions& options) {
  if (!device.set || (!options.device_memory && !options.stream)) return;
  throw InvalidValue("device='" + device_text(device) + "' is for operands in host memory and no stream; " +
                     (options.device_memory ? "operands in device memory are" : "a stream is") + " on one device");
}

}  // namespace fl
