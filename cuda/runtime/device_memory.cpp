// Memory of device arrays: allocated and given back in the order of a stream.
#include <new>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"
#include "device/device_memory.h"

namespace fl::cuda {
namespace {

void give_back(int device, void* data, std::size_t bytes, cudaStream_t stream) noexcept {
  if (device_count() == 0) return;  // in a child of fork there is nothing to free
  const DeviceGuard guard(device, std::nothrow);
  const AllowDuringCapture allow;
  pool_free(device, data, bytes, stream);
}

}  // namespace

std::shared_ptr<void> allocate(int device, std::size_t bytes, void* stream) {
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  const auto queue = static_cast<cudaStream_t>(stream);
  void* const data = pool_allocate(device, bytes, queue);
  return {data, [=](void*) { give_back(device, data, bytes, queue); }};  // gives it back too if this throws
}

void copy(int device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;  // waiting is among what another thread's capture forbids
  const cudaStream_t stream = library_stream(device);
  FL_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  FL_CUDA(cudaStreamSynchronize(stream));
}

int device_of(const void* data) {
  cudaPointerAttributes attributes{};
  if (device_count() == 0) return -1;
  FL_CUDA(cudaPointerGetAttributes(&attributes, data));
  return attributes.type == cudaMemoryTypeUnregistered ? -1 : attributes.device;
}

}  // namespace fl::cuda
