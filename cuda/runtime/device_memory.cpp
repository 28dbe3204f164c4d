// Device memory for device arrays, and for the benchmarks and the GPU tests.
#include "device/device_memory.h"

#include <new>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"

namespace fl::cuda {

// ---------------------------------------------------------------- in the order of a stream
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

// ---------------------------------------------------------------- of all streams
// Copies go through the library's stream of the device, so that they are ordered with calls that name no stream.
namespace {

void check_range(const DeviceBuffer& buffer, std::size_t bytes, std::size_t offset) {
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return;
  throw InvalidValue("a copy of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                     " does not fit in a device buffer of " + std::to_string(buffer.bytes()) + " bytes");
}

void* allocate_for_all_streams(std::size_t bytes, int device) {
  const DeviceGuard guard(device);
  const cudaStream_t stream = library_stream(device);
  void* const data = pool_allocate(device, bytes, stream);
  try {
    FL_CUDA(cudaStreamSynchronize(stream));  // work on any stream may use it from now on
  } catch (...) {
    pool_free(device, data, bytes, stream);
    throw;
  }
  return data;
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes, int device)
    : data_(allocate_for_all_streams(bytes, device)), bytes_(bytes), device_(device) {}

DeviceBuffer::~DeviceBuffer() {
  if (!data_ || device_count() == 0) return;  // in a child of fork there is nothing to free
  const DeviceGuard guard(device_, std::nothrow);
  ignore_errors(cudaDeviceSynchronize());  // work on any stream may have used it until now
  pool_free(device_, data_, bytes_, library_stream(device_));
}

void DeviceBuffer::upload(const void* host, std::size_t bytes, std::size_t offset) {
  check_range(*this, bytes, offset);
  copy(device_, static_cast<char*>(data_) + offset, host, bytes);
}

void DeviceBuffer::download(void* host, std::size_t bytes, std::size_t offset) const {
  check_range(*this, bytes, offset);
  copy(device_, host, static_cast<const char*>(data_) + offset, bytes);
}

}  // namespace fl::cuda
