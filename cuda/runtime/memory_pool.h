// Device memory. One pool per device, the library's own, so that its limit and figures concern nobody else.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

namespace fl::cuda {

// Stream-ordered: the memory may be used by work queued on `stream` after this, and until pool_free is queued on it.
// Throws OutOfMemory. The device must be current. Zero bytes give a null pointer without a CUDA call.
void* pool_allocate(int device, std::size_t bytes, cudaStream_t stream);
void pool_free(int device, void* data, std::size_t bytes, cudaStream_t stream) noexcept;

void pool_trim(int device);  // gives unused memory back, pinned memory too. The device must be current

std::size_t memory_limit(int device);  // 0: none

// Lets these devices copy straight to the memory of each other's pools. False if some pair of them cannot.
bool connect_pools(std::span<const int> devices);

class PoolBuffer {
 public:
  PoolBuffer(int device, std::size_t bytes, cudaStream_t stream)
      : device_(device), bytes_(bytes), stream_(stream), data_(pool_allocate(device, bytes, stream)) {}
  ~PoolBuffer() { pool_free(device_, data_, bytes_, stream_); }
  PoolBuffer(const PoolBuffer&) = delete;
  PoolBuffer& operator=(const PoolBuffer&) = delete;
  char* data() const { return static_cast<char*>(data_); }  // 256-byte aligned

 private:
  int device_;
  std::size_t bytes_;
  cudaStream_t stream_;
  void* data_;
};

}  // namespace fl::cuda
