// In place of the kernels' own launch.cuh where one of them is compiled for the host: its blocks and threads follow one
// another, as one piece of work of the simulated device. For kernels whose threads do not wait for each other.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "core/context.h"
#include "operands.h"
#include "scheduler.h"

inline uint3 blockIdx, threadIdx;
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

namespace fl {

using std::min;

struct LaunchShape {
  unsigned blocks, threads;
};

inline void pdl_wait() {}

template <auto KERNEL, class... Args>
void launch_kernel(const LaunchShape& shape, const Context& context, const Args&... args) {
  const simulated::Lock lock(simulated::mutex);
  simulated::Stream& stream = simulated::stream_of(static_cast<cudaStream_t>(context.stream));
  if (stream.device != simulated::current_device())
    simulated::wrong("a kernel is launched on a stream of a device that is not current");
  simulated::enqueue(stream, [=] {
    (simulated::check_operands(args), ...);
    for (blockIdx.x = 0; blockIdx.x < shape.blocks; ++blockIdx.x)
      for (threadIdx.x = 0; threadIdx.x < shape.threads; ++threadIdx.x) KERNEL(args...);
  });
}

}  // namespace fl
