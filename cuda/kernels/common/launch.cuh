// How kernels are launched.
//
// launch_kernel is for what <<<>>> cannot express: clusters of blocks, more than 48 KiB of shared memory, and
// programmatic dependent launch (PDL), by which a kernel's start overlaps the end of the one before it. PDL saves 0.3
// us a launch, a fifth of the shortest products; a kernel still begins to read only when all before it is done.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

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
// The answer to a yes-or-no question about each of the first 64 devices, of which those asked about have a bit.
struct DeviceAnswers {
  uint64_t asked = 0, yes = 0;
};

struct LaunchShape {
  unsigned blocks;
  int threads;
  int shared_bytes = 0;       // dynamic
  int cluster = 1;            // blocks
  int most_shared_bytes = 0;  // what any launch of the kernel asks for, where that is not always shared_bytes
};

// A kernel as host code knows it, and on which devices the code of it that runs there has been compiled for compute
// capability 9.0 or more: such code waits by itself, and knows clusters.
struct LaunchedKernel {
  const void* function;
  DeviceAnswers& for_sm90;
};

template <auto KERNEL>
LaunchedKernel launched() {
  static constinit DeviceAnswers for_sm90;
  return {reinterpret_cast<const void*>(KERNEL), for_sm90};
}

// Makes the kernel ready on the current device, the first time that it is asked about, and says whether it has code for
// 9.0.
cudaError_t prepare_kernel(const LaunchedKernel& kernel, bool& for_sm90, int most_shared_bytes);
// Whether blocks of a kernel without dynamic shared memory may form clusters: its code knows them, and the device, or
// what it pretends to be, has them.
bool has_clusters(const LaunchedKernel& kernel, const Context& ctx);
// Whether a kernel that exists with asynchronous copies and without them runs with them: the code of this library that
// the current device has loaded knows them, and the device, or what it pretends to be, has them. Code for 7.5 runs on
// any device where the build has no other. One kernel speaks for all.
bool copies_async(const void* kernel, const Context& ctx);
// How many clusters of such a launch run at a time on the current device; 0 if that cannot be found out, which is no
// error of the call.
int active_clusters(const LaunchedKernel& kernel, const LaunchShape& shape);
// Whether the current device has room for one of more blocks than all devices with clusters have, asked once.
bool large_clusters_fit(const LaunchedKernel& kernel, const LaunchShape& shape, DeviceAnswers& known);
void launch_kernel(const LaunchedKernel& kernel, const LaunchShape& shape, const Context& ctx, void** arguments);

template <class... Params>
void launch_with(void (*)(Params...), const LaunchedKernel& kernel, const LaunchShape& shape, const Context& ctx,
                 const std::type_identity_t<Params>&... args) {
  void* arguments[] = {const_cast<void*>(static_cast<const void*>(&args))...};
  launch_kernel(kernel, shape, ctx, arguments);
}

// The kernel has to call pdl_wait() before it touches global memory. An error stays with the runtime, where the caller
// of the kernel table's function looks for it.
template <auto KERNEL, class... Args>
void launch_kernel(const LaunchShape& shape, const Context& ctx, const Args&... args) {
  launch_with(KERNEL, launched<KERNEL>(), shape, ctx, args...);
}

}  // namespace fl
