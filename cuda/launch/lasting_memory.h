// Memory of the pool that stays between calls, for use on any stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/runtime/check.h"

namespace fl::cuda {

// Its uses wait for each other on the device. None in a capture: an event from outside must not come into it, nor one
// of its own get out.
class LastingMemory {
 public:
  LastingMemory(int device, std::size_t bytes);  // OutOfMemory; nothing for zero bytes
  ~LastingMemory();
  LastingMemory(const LastingMemory&) = delete;
  LastingMemory& operator=(const LastingMemory&) = delete;

  char* data() const { return static_cast<char*>(data_); }  // 256-byte aligned

  // queue() puts work that uses the memory on `stream`.
  template <class Queue>
  void use(cudaStream_t stream, Queue&& queue) const {
    if (!data_) return queue();
    FL_CUDA(cudaStreamWaitEvent(stream, last_use_, 0));
    try {
      queue();
      FL_CUDA(cudaEventRecord(last_use_, stream));
    } catch (...) {  // what was queued before it failed still uses the memory
      ignore_errors(cudaEventRecord(last_use_, stream));
      throw;
    }
  }

 private:
  int device_;
  std::size_t bytes_;
  void* data_ = nullptr;
  cudaEvent_t last_use_ = nullptr;
};

}  // namespace fl::cuda
