// Launches that <<<>>> cannot express: more than 48 KiB of shared memory, clusters of blocks, and a start that overlaps
// the end of the kernel before.
#pragma once

#include <atomic>

#include "cuda/kernels/common/launch.cuh"

namespace fl {

// The limit on a kernel's shared memory has to be raised once per device. `raised` has one bit per device; devices past
// its 64 are asked every time.
inline cudaError_t raise_shared_limit(const void* kernel, int bytes, std::atomic<uint64_t>& raised) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;
  if (raised.load(std::memory_order_acquire) & bit) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess) raised.fetch_or(bit, std::memory_order_release);
  return error;
}

struct LaunchShape {
  unsigned blocks;
  int threads, shared_bytes;
  int cluster = 1;
};

// The kernel has to call ptx::grid_wait() before it touches global memory. An error stays with the runtime, where the
// caller of the row looks for it.
template <class... Params, class... Args>
void launch_overlapping(void (*kernel)(Params...), const LaunchShape& shape, cudaStream_t stream,
                        std::atomic<uint64_t>& raised, const Args&... args) {
  if (raise_shared_limit(reinterpret_cast<const void*>(kernel), shape.shared_bytes, raised) != cudaSuccess) return;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = static_cast<unsigned>(shape.cluster);
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = shape.cluster > 1 ? 2 : 1;
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, args...));
}

}  // namespace fl
