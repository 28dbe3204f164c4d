// One call of one kernel on operands in device memory.
#include <atomic>
#include <cstring>

#include "core/operations.h"
#include "cuda/launch/graph_cache.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/memory_pool.h"
#include "device/launches.h"
#include "device/streams.h"

namespace fl::cuda {
namespace {

void read_status_words(const void* workspace, int device, cudaStream_t stream, StatusWords& left) {
  if (capturing(device, stream)) return;
  FL_CUDA(cudaMemcpyAsync(left.words, workspace, sizeof(left.words), cudaMemcpyDeviceToHost, stream));
  FL_CUDA(cudaStreamSynchronize(stream));
  left.read = true;
}

}  // namespace

unsigned* rejection_words() {
  static std::atomic<unsigned*> words{nullptr};
  if (unsigned* const made = words.load(std::memory_order_acquire)) return made;
  const AllowDuringCapture allow;
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, REJECTION_WORDS * sizeof(unsigned), cudaHostAllocPortable);
  if (error != cudaSuccess) return ignore_errors(error), nullptr;
  auto* const own = static_cast<unsigned*>(std::memset(memory, 0, REJECTION_WORDS * sizeof(unsigned)));
  unsigned* made = nullptr;
  if (words.compare_exchange_strong(made, own)) return own;
  ignore_errors(cudaFreeHost(own));
  return made;
}

// Queues work and returns. Without a workspace it neither allocates nor waits, so that it can be captured in a graph
// from the first call on.
template <class Args>
void run_on_device_operands(const Kernel<Args>& kernel, const Args& args, int device, void* stream, StatusWords* left) {
  queue_on_device(kernel, device, stream, [&](cudaStream_t queue) {
    if (!left && start_cached_graph(kernel, args, device, queue)) return;
    const PoolBuffer workspace(device, kernel.workspace(args), queue);
    launch_kernel(kernel, args, device, workspace.data(), queue);
    if (left && workspace.data()) read_status_words(workspace.data(), device, queue, *left);
  });
}

void copy_triangle(const TriangleCopy& copy, int device, void* stream) {
  const DeviceGuard guard(device);
  require_numbered(copy.n, copy.n, copy.batch);
  fl::copy_triangle(copy, context_on(device, stream_of(stream, device)));
  check_launch();
}

#define FL_INSTANTIATE(Args) \
  template void run_on_device_operands(const Kernel<Args>&, const Args&, int, void*, StatusWords*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
