// Short calls on the same operands again and again, as in a loop over buffers that stay: such a call is recorded as a
// CUDA graph, which starts in half the time of a launch.
#pragma once

#include <cuda_runtime_api.h>

#include "table/registry.h"

namespace fl::cuda {

// Starts the call on `stream` if it has been recorded, or is worth recording now; else the caller has to launch it.
template <class Args>
bool start_cached_graph(const Kernel<Args>& kernel, const Args& args, int device, cudaStream_t stream);

}  // namespace fl::cuda
