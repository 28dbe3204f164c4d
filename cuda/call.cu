// One call of one kernel, on operands in host memory or in device memory.
#include <climits>
#include <string>

#include "check.h"
#include "device.h"
#include "device_guard.h"
#include "errors.h"
#include "memory_pool.h"
#include "operands.h"
#include "staging.h"
#include "streams.h"
#include "transfer.h"

namespace fl::cuda {
namespace {

// A kernel numbers its blocks in one launch dimension of 2^31 - 1. With no tile smaller than 8 x 8 only a batch of
// thousands of millions of tiny problems passes that.
double blocks(const SgemmArgs& p) { return double(ceil_div(p.m, 8)) * double(ceil_div(p.n, 8)) * double(p.batch); }
double blocks(const SgemvArgs& p) { return double(ceil_div(p.m, 8)) * double(p.batch); }
double blocks(const TransposeArgs& p) { return double(ceil_div(p.m, 8)) * double(ceil_div(p.n, 8)) * double(p.batch); }

template <class Args>
void launch(const Kernel<Args>& kernel, const Args& args, int device, void* workspace, cudaStream_t stream) {
  if (blocks(args) > INT_MAX)
    throw InvalidValue("a batch of " + std::to_string(args.batch) +
                       " problems is too large for one call on a CUDA device");
  kernel.run(args, Context{.workspace = workspace, .stream = stream, .sm_count = device_info(device).sm_count});
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) fail(error, "the launch", __FILE__, __LINE__);
}

// Says which call it was. A kernel that fails while it runs is reported by whatever waits for it first.
template <class Args>
CudaError named(const CudaError& error, const Kernel<Args>& kernel, int device) {
  return CudaError(error.code, error.name,
                   std::string(op_name<Args>()) + " kernel '" + kernel.name + "' on cuda:" + std::to_string(device) +
                       ": " + error.what());
}

// ---------------------------------------------------------------- operands in host memory
template <class T>
std::size_t device_bytes(const Lines<T>& operand) {
  if (operand.empty()) return 0;
  // Broadcast views can be larger than any memory.
  const double bytes = double(operand.total()) * double(operand.ld) * sizeof(float);
  if (bytes > double(int64_t(1) << 60))
    throw OutOfMemory("an operand of " + std::to_string(operand.total()) + " x " + std::to_string(operand.length) +
                      " elements does not fit in device memory");
  return std::size_t(operand.total() * operand.ld) * sizeof(float);
}
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::size_t device_bytes(const Operands& operands) {
  std::size_t bytes = aligned(device_bytes(operands.output.host));
  for (const Input& input : operands.inputs) bytes += aligned(device_bytes(input.host));
  return bytes;
}

// Gives every operand its place in one block of device memory. What is left, from the result on, is the workspace.
char* place(const Operands& operands, char* memory) {
  for (const Input& input : operands.inputs) {
    if (input.device) *input.device = reinterpret_cast<const float*>(memory);
    memory += aligned(device_bytes(input.host));
  }
  *operands.output.device = reinterpret_cast<float*>(memory);
  return memory + aligned(device_bytes(operands.output.host));
}

void upload_inputs(const Operands& operands, StagingRing& ring, cudaStream_t stream) {
  for (const Input& input : operands.inputs)
    if (!input.host.empty()) upload(input.host, const_cast<float*>(*input.device), ring, stream);
}

// The result's old values if they are read, else something in the padding that comes back with the result: nothing is
// copied that was not written. That is cheaper than a copy of short rows without their padding.
void prepare_output(const Output& output, StagingRing& ring, cudaStream_t stream) {
  const Lines<float>& host = output.host;
  if (output.read)
    upload({host.data, host.batch, host.lines, host.length, host.bs, host.line_stride, host.step, host.ld},
           *output.device, ring, stream);
  else if (download_reads_padding(host)) FL_CUDA(cudaMemsetAsync(*output.device, 0, device_bytes(host), stream));
}

template <class Args>
void copy_run_copy(const Kernel<Args>& kernel, const Args& host, const Args& layout, int device, cudaStream_t stream) {
  Args args = layout;
  const Operands on = operands(host, args);
  const PoolBuffer memory(device, device_bytes(on) + kernel.workspace(layout), stream);
  StagingRing ring(device);
  char* const workspace = place(on, memory.data());
  upload_inputs(on, ring, stream);
  prepare_output(on.output, ring, stream);
  launch(kernel, args, device, workspace, stream);
  download(*on.output.device, on.output.host, ring, stream);
}

void refuse_capture(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FL_CUDA(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status));
  if (status != cudaStreamCaptureStatusNone)
    throw InvalidValue(
        "a call on arrays in host memory waits for its result and cannot be captured in a CUDA graph: "
        "use device arrays");
}

}  // namespace

template <class Args>
void run_on_host_operands(const Kernel<Args>& kernel, const Args& host, const Args& layout, int device, void* stream) {
  require_device(device);
  const DeviceGuard guard(device);
  if (stream) refuse_capture(stream);
  const StreamLease lease(device, stream);
  try {
    copy_run_copy(kernel, host, layout, device, lease.get());
    FL_CUDA(cudaStreamSynchronize(lease.get()));
  } catch (const CudaError& error) {
    // No copy may touch the caller's memory after the call has returned.
    ignore_errors(cudaStreamSynchronize(lease.get()));
    throw named(error, kernel, device);
  } catch (...) {
    ignore_errors(cudaStreamSynchronize(lease.get()));
    throw;
  }
}

// Queues work and returns. Without a workspace, or with a kept one, it neither allocates nor waits, so that it can be
// captured in a graph from the first call on.
template <class Args>
void run_on_device_operands(const Kernel<Args>& kernel, const Args& args, int device, void* stream,
                            KeptWorkspace* kept) {
  require_device(device);
  const DeviceGuard guard(device);
  try {
    const cudaStream_t queue = stream ? static_cast<cudaStream_t>(stream) : library_stream(device);
    if (kept) {
      launch(kernel, args, device, kept->begin_use(queue), queue);
      return kept->end_use(queue);
    }
    const PoolBuffer workspace(device, kernel.workspace(args), queue);
    launch(kernel, args, device, workspace.data(), queue);
  } catch (const CudaError& error) {
    throw named(error, kernel, device);
  }
}

#define FL_INSTANTIATE(Args)                                                                     \
  template void run_on_host_operands(const Kernel<Args>&, const Args&, const Args&, int, void*); \
  template void run_on_device_operands(const Kernel<Args>&, const Args&, int, void*, KeptWorkspace*);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
