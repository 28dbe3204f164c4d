// The devices: their properties, the errors of the runtime, the current context.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/device_spec.h"
#include "scheduler.h"

using namespace simulated;

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local CUcontext current = nullptr;
std::atomic<bool> made{false};
char primary_contexts[64];

int compute_capability() {  // 10 * major + minor
  const char* const text = std::getenv("FASTLINALG_SIMULATED_CC");
  return text ? std::atoi(text) : 90;
}

CUresult get_current(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult set_current(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

constexpr std::pair<cudaError_t, const char*> names[] = {
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice"},
    {cudaErrorNotReady, "cudaErrorNotReady"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation"},
};

// The device that the environment asks for: of a compute capability (10 * major + minor), with so many multiprocessors
// and so much of the memory's speed. Without: an H200's figures under another name.
fl::DeviceSpec pose(int device) {
  const auto number = [device](const char* variable, int otherwise) {
    const char* text = std::getenv(variable);
    if (!text) return otherwise;
    for (int i = 0; i < device && std::strchr(text, ','); ++i) text = std::strchr(text, ',') + 1;
    return std::atoi(text);
  };
  const fl::DeviceSpec& h200 = fl::h200_spec();
  fl::DeviceSpec spec =
      fl::spec_of(compute_capability(), number("FASTLINALG_SIMULATED_SMS", h200.multiprocessors), h200.clock_khz);
  spec.l2_bytes = h200.l2_bytes;
  spec.bytes_per_us = h200.bytes_per_us * number("FASTLINALG_SIMULATED_MEMORY_PERCENT", 100) / 100;
  return spec;
}

}  // namespace

bool simulated::context_made() { return made; }

int simulated::device_count() {
  const char* const text = std::getenv("FASTLINALG_SIMULATED_DEVICES");
  return text ? std::atoi(text) : 1;
}

int simulated::current_device() { return current ? int(reinterpret_cast<char*>(current) - primary_contexts) : 0; }

std::string simulated::loaded_code() {
  if (const char* code = std::getenv("FASTLINALG_SIMULATED_CODE")) return code;
  const char* const only_ptx = std::getenv("CUDA_FORCE_PTX_JIT");
  return compute_capability() == 90 && !(only_ptx && std::atoi(only_ptx)) ? "90a" : "80";
}

cudaError_t simulated::status(cudaError_t error) { return last_error = error; }

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t error) {
  for (const auto& [code, name] : names)
    if (code == error) return name;
  return "cudaErrorOfTheSimulation";
}
const char* cudaGetErrorString(cudaError_t) { return "an error of the simulated device"; }

cudaError_t cudaDriverGetVersion(int* version) {
  const char* const text = std::getenv("FASTLINALG_SIMULATED_DRIVER");
  *version = text ? std::atoi(text) : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  int driver = 0;
  cudaDriverGetVersion(&driver);
  return driver < CUDART_VERSION ? status(cudaErrorInsufficientDriver) : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return status(cudaErrorInvalidDevice);
  current = reinterpret_cast<CUcontext>(&primary_contexts[device]);
  made = true;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  std::memset(properties, 0, sizeof *properties);
  const char* const name = std::getenv("FASTLINALG_SIMULATED_NAME");
  std::strncpy(properties->name, name ? name : "simulated", sizeof properties->name - 1);
  const fl::DeviceSpec spec = pose(device);
  properties->major = spec.compute_capability / 10;
  properties->minor = spec.compute_capability % 10;
  properties->multiProcessorCount = spec.multiprocessors;
  properties->maxThreadsPerMultiProcessor = spec.threads_per_sm;
  properties->regsPerMultiprocessor = spec.registers_per_sm;
  properties->sharedMemPerMultiprocessor = spec.shared_per_sm;
  properties->sharedMemPerBlockOptin = spec.shared_per_block;
  properties->l2CacheSize = int(spec.l2_bytes);
  std::size_t free = 0;
  return cudaMemGetInfo(&free, &properties->totalGlobalMem);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const fl::DeviceSpec spec = pose(device);
  constexpr int bus_bits = 6144;
  switch (attribute) {
    case cudaDevAttrClockRate: *value = spec.clock_khz; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = bus_bits; break;
    case cudaDevAttrMemoryClockRate: *value = int(std::lround(spec.bytes_per_us * 8 / (2e-3 * bus_bits))); break;
    default: return status(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const char* const text = std::getenv("FASTLINALG_SIMULATED_PEERS");
  if (device == peer || std::max(device, peer) >= device_count()) return status(cudaErrorInvalidDevice);
  *can = !text || std::atoi(text);
  return cudaSuccess;
}

// Of the kernel by which the host layer tells which code is loaded (cuda/runtime/loaded_code.cu).
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  const std::string code = loaded_code();
  if (code == "none") return status(cudaErrorNoKernelImageForDevice);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->binaryVersion = compute_capability();
  attributes->ptxVersion = std::atoi(code.c_str());
  attributes->maxThreadsPerBlock = code == "90a" ? 64 : 32;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  if (!std::strcmp(name, "cuCtxGetCurrent")) *function = reinterpret_cast<void*>(&get_current);
  else if (!std::strcmp(name, "cuCtxSetCurrent")) *function = reinterpret_cast<void*>(&set_current);
  else wrong(std::string("no driver function ") + name);
  return cudaSuccess;
}
}
