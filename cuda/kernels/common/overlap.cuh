// Launches whose start may overlap the end of the kernel before, where the code that runs can wait for it by itself.
// That saves 0.3 us a launch, a fifth of the shortest products; a kernel still begins to read only when all before it
// is done.
#pragma once

#include <atomic>

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"

namespace fl {

// First thing in a kernel started by launch_overlapping. Code for less than compute capability 9.0 has no such
// instruction, and is started without the attribute.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  ptx::grid_wait();
#endif
}

// From here on the next kernel may start, as far as there is room. Its blocks land unevenly then: worth it only in
// kernels of a few microseconds, or before a small one.
__device__ __forceinline__ void release_next() {
#if __CUDA_ARCH__ >= 900
  ptx::grid_release();
#endif
}

struct GridShape {
  unsigned blocks;
  int threads;
  int cluster = 1;
  int shared_bytes = 0;  // dynamic; above 48 KiB the kernel's limit has to be raised before
};

// One bit per device, asked once; devices past 63 are asked every time.
struct PerDevice {
  std::atomic<uint64_t> asked{0}, waits{0};
};

// Whether the code that this device runs has been compiled for compute capability 9.0 or more.
inline bool waits_for_previous(const void* kernel, PerDevice& known) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return false;
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;
  if (known.asked.load(std::memory_order_acquire) & bit) return known.waits.load(std::memory_order_relaxed) & bit;
  cudaFuncAttributes code{};
  if (cudaFuncGetAttributes(&code, kernel) != cudaSuccess) return false;
  const bool waits = code.ptxVersion >= 90;
  if (waits) known.waits.fetch_or(bit, std::memory_order_relaxed);
  known.asked.fetch_or(bit, std::memory_order_release);
  return waits;
}

// An error stays with the runtime, where the caller of the row looks for it.
template <class... Params, class... Args>
void launch_overlapping(void (*kernel)(Params...), const GridShape& shape, const Context& ctx, PerDevice& known,
                        const Args&... args) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (waits_for_previous(reinterpret_cast<const void*>(kernel), known)) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = static_cast<unsigned>(shape.cluster);
    attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.stream = stream(ctx);
  config.attrs = attributes;
  config.numAttrs = count;
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, args...));
}

}  // namespace fl
