// The device table: looked up once, at the first question, without creating a context.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/errors.h"
#include "core/lazy.h"
#include "cuda/runtime/check.h"
#include "device/device_info.h"
#include "device/pretended.h"
#include "runtime/fork.h"

namespace fl::cuda {
namespace {

struct DeviceTable {
  std::vector<DeviceInfo> devices;
  Unavailable reason;
  int driver = 0;
};

// ---------------------------------------------------------------- fork
// Even asking how many devices there are initialises the driver, and a child of fork cannot use it then.
constexpr int64_t not_used = -1;
std::atomic<int64_t> used_in{not_used};  // the fork_generation() that has looked for devices, unless there are none

bool lost_by_fork() {
  const int64_t generation = used_in.load();
  return generation != not_used && generation != fork_generation();
}

const Unavailable forked_reason{
    cudaErrorInitializationError, "cudaErrorInitializationError",
    "CUDA cannot be used in this process: it was forked from one that had already used CUDA. "
    "Start it by exec, in Python by the method 'spawn' or 'forkserver', or compute on the CPU (device 'cpu')"};

// ---------------------------------------------------------------- the look-up
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string no_driver_text(int driver) {
  if (driver == 0) return "no NVIDIA driver was found on this machine";
  return "the NVIDIA driver supports CUDA up to " + version_text(driver) + " and this build of fastlinalg needs CUDA " +
         version_text(CUDART_VERSION) + ": update the driver";
}

std::string no_device_text() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible) return "the NVIDIA driver reports no CUDA device";
  return "no CUDA device is visible: CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "'";
}

Unavailable why(cudaError_t error, int driver) {
  static_cast<void>(cudaGetLastError());
  Unavailable reason{int(error), cudaGetErrorName(error), ""};
  switch (error) {
    case cudaErrorInsufficientDriver: reason.message = no_driver_text(driver); break;
    case cudaErrorNoDevice: reason.message = no_device_text(); break;
    case cudaErrorInitializationError:
      reason.message =
          "CUDA could not be initialised; in a child of fork that is because the parent had already used CUDA";
      break;
    default:
      reason.message = "CUDA could not be initialised: " + reason.name + " (" + std::to_string(int(error)) +
                       "): " + cudaGetErrorString(error);
  }
  return reason;
}

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  FL_CUDA(cudaDeviceGetAttribute(&value, name, device));
  return value;
}

// What the driver says comes before what the table of capabilities says.
DeviceSpec look_up_spec(const cudaDeviceProp& properties, int device) {
  const int clock_khz = attribute(cudaDevAttrClockRate, device);
  DeviceSpec spec = spec_of(10 * properties.major + properties.minor, properties.multiProcessorCount, clock_khz);
  set_name(spec, properties.name);
  spec.threads_per_sm = properties.maxThreadsPerMultiProcessor;
  spec.registers_per_sm = properties.regsPerMultiprocessor;
  spec.shared_per_sm = properties.sharedMemPerMultiprocessor;
  spec.shared_per_block = properties.sharedMemPerBlockOptin;
  spec.l2_bytes = std::size_t(properties.l2CacheSize);
  // Twice a clock a bit on each wire. Some devices do not tell, and then costs are those of the chip they are taken
  // from.
  const double memory_khz = attribute(cudaDevAttrMemoryClockRate, device);
  spec.bytes_per_us = 2e-3 * memory_khz * attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
  return spec;
}

DeviceInfo look_up_device(int device) {
  cudaDeviceProp properties;
  FL_CUDA(cudaGetDeviceProperties(&properties, device));
  const DeviceSpec real = look_up_spec(properties, device);
  const Pretended answer = pretended(real);
  return {.ordinal = device,
          .memory = properties.totalGlobalMem,
          .compute_capability = real.compute_capability,
          .spec = answer.spec,
          .pretended = answer.why,
          .ignored = answer.ignored,
          .expected_code = expected_code(built_architectures(), real.compute_capability, jit_settings())};
}

DeviceTable look_up() {
  DeviceTable table;
  static_cast<void>(cudaDriverGetVersion(&table.driver));
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    table.reason = why(error == cudaSuccess ? cudaErrorNoDevice : error, table.driver);
    return table;
  }
  try {
    for (int device = 0; device < count; ++device) table.devices.push_back(look_up_device(device));
  } catch (const CudaError& e) {
    table.devices.clear();
    table.reason = {e.code, e.name, "the CUDA devices could not be examined: " + std::string(e.what())};
  }
  return table;
}

DeviceTable look_up_and_mark() {
  int64_t unused = not_used;
  used_in.compare_exchange_strong(unused, fork_generation());
  DeviceTable table = look_up();
  if (table.devices.empty()) used_in.store(not_used);
  return table;
}

const DeviceTable& table() {
  static constinit Lazy<DeviceTable> result;
  return result.get(look_up_and_mark);
}

}  // namespace

int device_count() { return lost_by_fork() ? 0 : int(table().devices.size()); }

const Unavailable& unavailable() { return lost_by_fork() ? forked_reason : table().reason; }

const DeviceInfo& device_info(int device) {
  require_device(device);
  return table().devices[std::size_t(device)];
}

int driver_version() { return lost_by_fork() ? 0 : table().driver; }

int runtime_version() { return CUDART_VERSION; }

const char* built_architectures() { return FASTLINALG_BUILT_ARCHITECTURES; }

void require_device(int device) {
  const int count = device_count();
  if (count == 0) throw CudaError(unavailable().code, unavailable().name, unavailable().message);
  if (device >= 0 && device < count) return;
  throw CudaError(cudaErrorInvalidDevice, "cudaErrorInvalidDevice",
                  "there is no device cuda:" + std::to_string(device) + "; this machine has " +
                      (count == 1 ? std::string("cuda:0 only") : "cuda:0 to cuda:" + std::to_string(count - 1)));
}

}  // namespace fl::cuda
