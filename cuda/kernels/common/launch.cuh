// How kernels are launched.
//
// launch_kernel is for what <<<>>> cannot express: clusters of blocks, more than 48 KiB of shared memory, and
// programmatic dependent launch (PDL), by which a kernel's start overlaps the end of the one before it. PDL saves 0.3
// us a launch, a fifth of the shortest products; a kernel still begins to read only when all before it is done.
#pragma once

#include <cuda_runtime.h>

#include <climits>
#include <cstdint>

#include "core/context.h"

namespace fl {

inline cudaStream_t stream(const Context& ctx) { return static_cast<cudaStream_t>(ctx.stream); }

// Whether this is code for one of the TARGETS, 86 or 120: the same source takes some registers more there than a launch
// bound leaves. Families such as 10.x are the oldest of them.
template <int... TARGETS>
#ifdef __CUDA_ARCH__
constexpr bool code_for = ((__CUDA_ARCH__ == 10 * TARGETS) || ...);
#else
constexpr bool code_for = false;
#endif

// All that a kernel does in code for a target that lacks its instructions, where an empty body would leave the result
// as it was and report nothing. Such code is part of every binary for several targets. Dispatch does not take the
// kernel where it would run (device/loaded_code.h), so this ends what must not have been launched.
__device__ __forceinline__ void not_for_this_target() { __trap(); }

// ---------------------------------------------------------------- programmatic dependent launch, in a kernel
// In a kernel started by launch_kernel: nothing that an earlier kernel of the stream wrote may be read, and nothing it
// may still read be written, before this. Code for less than compute capability 9.0 has no such instruction; it, and
// any code on a device without PDL or one that pretends to be such, is started without the attribute and waits for
// nothing.
__device__ __forceinline__ void pdl_wait() {  // griddepcontrol.wait
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// From here on the next kernel may start, as far as there is room; it waits as well. Its blocks land unevenly then:
// worth it only in kernels of a few microseconds, or before a small one.
__device__ __forceinline__ void pdl_launch_next() {  // griddepcontrol.launch_dependents
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// ---------------------------------------------------------------- launches
// The answer to a yes-or-no question about each device, asked once; devices past the 64th are asked every time.
// With the compiler's own atomics: nvcc would read <atomic> in every kernel file, once for each target.
class DeviceAnswers {
 public:
  // ask(yes) returns an error, after which it is asked again.
  template <class Ask>
  cudaError_t get(bool& yes, const Ask& ask) {
    int device = 0;
    if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
    const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;
    if (__atomic_load_n(&asked_, __ATOMIC_ACQUIRE) & bit) {
      yes = __atomic_load_n(&yes_, __ATOMIC_RELAXED) & bit;
      return cudaSuccess;
    }
    if (const cudaError_t error = ask(yes); error != cudaSuccess) return error;
    if (yes) __atomic_fetch_or(&yes_, bit, __ATOMIC_RELAXED);
    __atomic_fetch_or(&asked_, bit, __ATOMIC_RELEASE);
    return cudaSuccess;
  }

 private:
  uint64_t asked_ = 0, yes_ = 0;
};

struct LaunchShape {
  unsigned blocks;
  int threads;
  int shared_bytes = 0;       // dynamic
  int cluster = 1;            // blocks
  int most_shared_bytes = 0;  // what any launch of the kernel asks for, where that is not always shared_bytes
};

// Makes the kernel ready on the current device, the first time that it is asked about, and says whether the code that
// runs there has been compiled for compute capability 9.0 or more: whether it waits by itself, and knows clusters.
template <auto KERNEL>
cudaError_t prepare_kernel(bool& for_sm90, int most_shared_bytes) {
  static constinit DeviceAnswers answers;
  return answers.get(for_sm90, [&](bool& yes) {
    const auto kernel = reinterpret_cast<const void*>(KERNEL);
    cudaFuncAttributes code{};
    const cudaError_t error = cudaFuncGetAttributes(&code, kernel);
    yes = code.ptxVersion >= 90;
    if (error != cudaSuccess || most_shared_bytes == 0) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared_bytes);
  });
}

// Whether blocks of a kernel without dynamic shared memory may form clusters: its code knows them, and the device, or
// what it pretends to be, has them.
template <auto KERNEL>
bool has_clusters(const Context& ctx) {
  bool for_sm90 = false;
  return ctx.device->has(feature_clusters) && prepare_kernel<KERNEL>(for_sm90, 0) == cudaSuccess && for_sm90;
}

// The kernel has to call pdl_wait() before it touches global memory. An error stays with the runtime, where the caller
// of the kernel table's function looks for it.
template <auto KERNEL, class... Args>
void launch_kernel(const LaunchShape& shape, const Context& ctx, const Args&... args) {
  bool waits = false;
  const int limit = static_cast<int>(ctx.device->shared_per_block);
  const int wanted = shape.most_shared_bytes > 0 ? shape.most_shared_bytes : shape.shared_bytes;
  const int most = wanted < limit ? wanted : limit;
  if (prepare_kernel<KERNEL>(waits, most) != cudaSuccess) return;
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (waits && ctx.device->has(feature_pdl)) {
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
  // More than a block may have is an error of the runtime, on a device that only pretends to have no more too.
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes <= limit ? shape.shared_bytes : INT_MAX);
  config.stream = stream(ctx);
  config.attrs = attributes;
  config.numAttrs = count;
  static_cast<void>(cudaLaunchKernelEx(&config, KERNEL, args...));
}

}  // namespace fl
