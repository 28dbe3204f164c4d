#include "cuda/runtime/check.h"

#include <cstring>
#include <string>

#include "core/errors.h"
#include "device/device_info.h"
#include "device/pretended.h"

namespace fl::cuda {
namespace {

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The code in this library and the device do not fit: say what each of them is.
std::string architectures_hint() {
  std::string hint = "; this build of fastlinalg has code for " + std::string(built_architectures());
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= device_count()) return hint;
  return hint + ", and cuda:" + std::to_string(device) + " (" + device_info(device).spec.name +
         ") has compute capability " + capability_text(device_info(device).compute_capability);
}

std::string hint(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion: return architectures_hint();
    // After these every CUDA call of the process fails, whichever library caused it.
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return "; this call or earlier work has made the device unusable for this process, which has to be restarted";
    default: return "";
  }
}

}  // namespace

void fail(cudaError_t error, const char* call, const char* file, int line) {
  static_cast<void>(cudaGetLastError());
  const std::string name = cudaGetErrorName(error);
  const std::string message = std::string(call) + " failed: " + name + " (" + std::to_string(int(error)) +
                              "): " + cudaGetErrorString(error) + hint(error) + " [" + base_name(file) + ":" +
                              std::to_string(line) + "]";
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  throw CudaError(int(error), name, message);
}

}  // namespace fl::cuda
