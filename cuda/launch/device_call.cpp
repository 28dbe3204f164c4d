// One call of one kernel on operands in device memory.
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

#define FL_INSTANTIATE(Args) \
  template void run_on_device_operands(const Kernel<Args>&, const Args&, int, void*, StatusWords*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
