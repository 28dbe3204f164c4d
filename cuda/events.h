// The CUDA events of one call, from those that the device keeps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace fl::cuda {

class Events {
 public:
  Events(int device, std::size_t count);
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  cudaEvent_t operator[](std::size_t i) const { return events_[i]; }

 private:
  int device_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace fl::cuda
