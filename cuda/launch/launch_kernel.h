// The launch of one kernel of the table, with its errors.
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <string>
#include <type_traits>

#include "core/errors.h"
#include "core/operations.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"

namespace fl::cuda {

// A kernel numbers its blocks in one launch dimension of 2^31 - 1. With no tile smaller than 8 x 8 only a batch of
// thousands of millions of tiny problems passes that.
inline void require_numbered(int64_t rows, int64_t cols, int64_t batch) {
  if (double(ceil_div(rows, 8)) * double(ceil_div(cols, 8)) * double(batch) > INT_MAX)
    throw InvalidValue("a batch of " + std::to_string(batch) + " problems is too large for one call on a CUDA device");
}

// The stream of a call: the given one, or the library's own.
inline cudaStream_t stream_of(void* given, int device) {
  return given ? static_cast<cudaStream_t>(given) : library_stream(device);
}

inline Context context_on(int device, cudaStream_t stream) {
  const DeviceSpec& spec = device_info(device).spec;
  return {.stream = stream, .sm_count = spec.multiprocessors, .device = &spec};
}

inline void check_launch() {
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) fail(error, "the launch", __FILE__, __LINE__);
}

// Where kernels say what the host reads at a later call, without waiting for it: REJECTION_WORDS of them in pinned
// memory, zero at first, which is never freed; null while there is no room for them.
unsigned* rejection_words();

// Copies the addend to C.
void load_addend(const SgemmArgs& p, const Context& ctx);

template <class Args>
void launch_kernel(const Kernel<Args>& kernel, const Args& args, int device, void* workspace, cudaStream_t stream,
                   const PrepackedOperands* prepacked = nullptr, bool repeated = false, LaunchGroup* group = nullptr) {
  require_numbered(args.m, std::is_same_v<Args, SgemvArgs> ? 1 : args.n, args.batch);
  Context ctx = context_on(device, stream);
  ctx.workspace = workspace, ctx.prepacked = prepacked, ctx.repeated = repeated, ctx.group = group;
  if (kernel.traits.wgmma && kernel.traits.bf16x6_behind) ctx.rejections = rejection_words();
  Args seen = args;
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    if (args.addend.data && !kernel.traits.addend) load_addend(args, ctx), seen.addend = {};
  kernel.run(seen, ctx);
  check_launch();
}

// Says which call it was. A kernel that fails while it runs is reported by whatever waits for it first.
template <class Args>
CudaError named(const CudaError& error, const Kernel<Args>& kernel, const std::string& devices) {
  return CudaError(
      error.code, error.name,
      std::string(Operation<Args>::name) + " kernel '" + kernel.name + "' on " + devices + ": " + error.what());
}

// queue(stream) with the device current, on the given stream or the library's own.
template <class Args, class Queue>
void queue_on_device(const Kernel<Args>& kernel, int device, void* stream, Queue&& queue) {
  const DeviceGuard guard(device);
  try {
    queue(stream_of(stream, device));
  } catch (const CudaError& error) {
    throw named(error, kernel, "cuda:" + std::to_string(device));
  }
}

}  // namespace fl::cuda
