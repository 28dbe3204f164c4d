// A run that is repeated: its workspace, and the run itself as a CUDA graph.
#include "check.h"
#include "device.h"
#include "device_guard.h"
#include "errors.h"
#include "graph.h"
#include "memory_pool.h"
#include "streams.h"

namespace fl::cuda {
namespace {

// A graph saves 1.6 us a run of one kernel and 7 us of those of fp16x2; recording it takes 6 and 9 us (H200 host). So it is
// recorded when about as much has been lost without one, however many runs are still to come.
constexpr int runs_before_graph = 4;

}  // namespace

struct KeptRun::State {
  int device;
  std::size_t bytes;
  void* workspace = nullptr;
  cudaEvent_t last_use = nullptr;  // of the workspace
  GraphExec graph = nullptr;
  int runs = 0;  // since the arguments changed
};

KeptRun::KeptRun(std::size_t workspace_bytes, int device)
    : state_(new State{.device = device, .bytes = workspace_bytes}) {
  if (workspace_bytes == 0) return;
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  const cudaStream_t stream = library_stream(device);
  state_->workspace = pool_allocate(device, workspace_bytes, stream);
  cudaError_t error = cudaEventCreateWithFlags(&state_->last_use, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);  // the memory may be used on any stream from now on
  if (error == cudaSuccess) return;
  if (state_->last_use) ignore_errors(cudaEventDestroy(state_->last_use));
  pool_free(device, state_->workspace, workspace_bytes, stream);
  fail(error, "making the workspace of a plan", __FILE__, __LINE__);
}

// A graph may be destroyed while it runs.
KeptRun::~KeptRun() {
  if (device_count() == 0) {  // a child of fork cannot even destroy it
    static_cast<void>(state_->graph.release());
    return;
  }
  try {
    const DeviceGuard guard(state_->device);
    const AllowDuringCapture allow;
    state_->graph.reset();
    if (!state_->workspace) return;
    const cudaStream_t stream = library_stream(state_->device);
    ignore_errors(cudaStreamWaitEvent(stream, state_->last_use, 0));
    pool_free(state_->device, state_->workspace, state_->bytes, stream);
    ignore_errors(cudaEventDestroy(state_->last_use));
  } catch (...) {
    // The driver has gone, or the device has failed: all of it went with that.
  }
}

void KeptRun::forget() {
  state_->runs = 0;
  if (!state_->graph) return;
  const AllowDuringCapture allow;
  state_->graph.reset();
}

// What cannot be recorded is launched as before.
void KeptRun::record(const Launch& launch) {
  const AllowDuringCapture allow;
  const StreamLease lease(state_->device, nullptr);
  try {
    state_->graph = cuda::record(lease.get(), [&](cudaStream_t stream) { launch(stream, state_->workspace); });
  } catch (const CudaError&) {
    state_->graph = nullptr;
  }
}

void KeptRun::run(void* stream, const Launch& launch) {
  const auto queue = static_cast<cudaStream_t>(stream);
  // An event from outside a capture must not come into it, nor one of its own get out.
  if (is_capturing(queue)) return launch(stream, state_->workspace);
  if (state_->workspace) FL_CUDA(cudaStreamWaitEvent(queue, state_->last_use, 0));
  if (++state_->runs == runs_before_graph) record(launch);
  if (state_->graph) FL_CUDA(cudaGraphLaunch(state_->graph.get(), queue));
  else launch(stream, state_->workspace);
  if (state_->workspace) FL_CUDA(cudaEventRecord(state_->last_use, queue));
}

}  // namespace fl::cuda
