// Short calls on the same operands again and again, as in a loop over buffers that stay: such a call is recorded as a
// CUDA graph, which starts in half the time of a launch.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "device/launches.h"

namespace fl::cuda {

// Starts the call on `stream` if it has been recorded, or is worth recording now; else the caller has to launch it.
template <class Args>
bool start_cached_graph(const Kernel<Args>& kernel, const Args& args, int device, cudaStream_t stream);

// The same of a list, which launch(on) queues, however long its products take: it has a launch for nearly each.
struct ListCall {
  cudaStream_t stream = nullptr;
  const void* workspace = nullptr;
  std::vector<AnyLaunch> launches;
  bool operator==(const ListCall&) const = default;
};
bool start_cached_graph(const ListCall& call, int device, const std::function<void(cudaStream_t)>& launch);

}  // namespace fl::cuda
