// Which code of this library a device has loaded (loaded_code.h), asked of the runtime at the first call on the device.
//
// The list of architectures, the device's capability and the environment tell it in advance, and no context is needed
// for that. But it is the driver that chooses, so its answer is what calls go by. The runtime's version numbers cannot
// give that alone: binaryVersion is 90 for sm_90, for sm_90a and for PTX of 8.0 compiled for the device, ptxVersion is
// 90 for the first two. So one kernel has other launch bounds in code with the features of sm_90a, as CUDA allows, and
// the runtime says what they are in the code that it has loaded. Nothing is launched. All files are compiled for the
// same list, so one kernel speaks for all.
#include "device/loaded_code.h"

#include <atomic>
#include <cstdint>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"
#include "device/device_info.h"

namespace fl::cuda {
namespace {

enum ProbeThreads { without_features = 32, with_features = 64 };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr int PROBE_THREADS = with_features;
#else
constexpr int PROBE_THREADS = without_features;
#endif
__global__ void __launch_bounds__(PROBE_THREADS) probe() {}

// One word, so that it is read without a lock: 0 until the device has been asked.
struct Known {
  std::atomic<uint32_t> word{0};
};
constexpr uint32_t asked = 1, features = 2;
uint32_t packed(LoadedCode code) { return asked | (code.features ? features : 0) | uint32_t(code.target) << 2; }
LoadedCode unpacked(uint32_t word) { return {int(word >> 2), (word & features) != 0}; }

bool means_no_code(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled: return true;
    default: return false;
  }
}

LoadedCode ask(int device) {
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&probe));
  if (means_no_code(error)) {
    ignore_errors(error);
    return {};
  }
  FL_CUDA(error);
  return {attributes.ptxVersion, attributes.maxThreadsPerBlock == with_features};
}

}  // namespace

LoadedCode known_code(int device) {
  const uint32_t word = per_device<Known>(device).word.load(std::memory_order_relaxed);
  return word ? unpacked(word) : device_info(device).expected_code;
}

void load_code(int device) {
  std::atomic<uint32_t>& word = per_device<Known>(device).word;
  if (word.load(std::memory_order_relaxed)) return;
  word.store(packed(ask(device)), std::memory_order_relaxed);
}

}  // namespace fl::cuda
