// Memory of CUDA devices: the library's pool and its limits, and copies between host and device.
#pragma once

#include <cstddef>
#include <memory>

#include "core/export.h"

namespace fl::cuda {

struct MemoryInfo {
  std::size_t used = 0;             // bytes in live buffers of this library
  std::size_t reserved = 0;         // bytes its pool holds on the device
  std::size_t limit = 0;            // 0: none
  std::size_t free = 0, total = 0;  // of the device, as the driver reports
  std::size_t pinned = 0;           // bytes of pinned staging memory
};
FL_EXPORT MemoryInfo memory_info(int device);
FL_EXPORT void trim(int device);  // gives unused pool and staging memory back, and the graphs of calls that repeat
FL_EXPORT void set_memory_limit(int device, std::size_t bytes);  // 0 removes the limit

// Memory of the library's pool, for work queued on `stream` from now on; given back in the order of that stream.
FL_EXPORT std::shared_ptr<void> allocate(int device, std::size_t bytes, void* stream);

// Copies between host and device in the order of own_stream(device), and returns when the copy is there.
FL_EXPORT void copy(int device, void* to, const void* from, std::size_t bytes);

// The device whose memory `data` points into, or -1 if that is none.
FL_EXPORT int device_of(const void* data);

class FL_EXPORT DeviceBuffer {  // device memory of the library's pool
 public:
  DeviceBuffer(std::size_t bytes, int device);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void upload(const void* host, std::size_t bytes, std::size_t offset);
  void download(void* host, std::size_t bytes, std::size_t offset) const;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  void* data_;
  std::size_t bytes_;
  int device_;
};

}  // namespace fl::cuda
