// A run that is repeated: its workspace, the prepacked of operands that stay, and the run itself as a CUDA graph.
#include "core/operations.h"
#include "cuda/launch/graph.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/launch/placement.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/device.h"

namespace fl::cuda {
namespace {

// A graph saves 1.6 us a run of one kernel and 7 us of those of fp16x2; recording it takes 6 and 9 us (H200 host). So
// it is recorded when about as much has been lost without one, however many runs are still to come.
constexpr int runs_before_graph = 4;

}  // namespace

struct CapturedRun::State {
  int device;
  std::size_t bytes;
  PrepackedOperands prepacked;
  void* workspace = nullptr;       // and the prepacked operands behind it
  cudaEvent_t last_use = nullptr;  // of that memory
  GraphExec graph = nullptr;
  int runs = 0;  // since the arguments changed

  bool prepacked_ready() const {
    return (!prepacked.a.memory || prepacked.a.ready) && (!prepacked.b.memory || prepacked.b.ready);
  }
  void set_prepacked_ready(bool ready) { prepacked.a.ready = prepacked.b.ready = ready; }
};

CapturedRun::CapturedRun(std::size_t workspace_bytes, const PrepackedOperands& prepacked, int device)
    : state_(new State{.device = device,
                       .bytes = aligned(workspace_bytes) + aligned(prepacked.a.bytes) + prepacked.b.bytes,
                       .prepacked = prepacked}) {
  if (state_->bytes == 0) return;
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  const cudaStream_t stream = library_stream(device);
  state_->workspace = pool_allocate(device, state_->bytes, stream);
  char* const behind = static_cast<char*>(state_->workspace) + aligned(workspace_bytes);
  if (prepacked.a.bytes) state_->prepacked.a.memory = behind;
  if (prepacked.b.bytes) state_->prepacked.b.memory = behind + aligned(prepacked.a.bytes);
  cudaError_t error = cudaEventCreateWithFlags(&state_->last_use, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);  // the memory may be used on any stream from now on
  if (error == cudaSuccess) return;
  if (state_->last_use) ignore_errors(cudaEventDestroy(state_->last_use));
  pool_free(device, state_->workspace, state_->bytes, stream);
  fail(error, "making the workspace of a plan", __FILE__, __LINE__);
}

// A graph may be destroyed while it runs.
CapturedRun::~CapturedRun() {
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

void CapturedRun::forget() {
  state_->runs = 0;
  if (!state_->graph) return;
  require_device(state_->device);
  const DeviceGuard guard(state_->device);
  cuda::forget(state_->graph);
}

void CapturedRun::forget_prepacked() { state_->set_prepacked_ready(false); }

template <class Args>
void CapturedRun::run(const Kernel<Args>& kernel, const Args& args, void* stream) {
  State& state = *state_;
  const auto launch = [&](cudaStream_t on, const PrepackedOperands& prepacked) {
    launch_kernel(kernel, args, state.device, state.workspace, on, &prepacked, true);
  };
  queue_on_device(kernel, state.device, stream, [&](cudaStream_t queue) {
    // An event from outside a capture must not come into it, nor one of its own get out. Nor must a graph that is
    // launched at any time write what is kept: it reads the prepacked that are there, or makes its own in the
    // workspace.
    if (is_capturing(queue)) return launch(queue, state.prepacked_ready() ? state.prepacked : PrepackedOperands{});
    if (state.workspace) FL_CUDA(cudaStreamWaitEvent(queue, state.last_use, 0));
    try {
      if (state.prepacked_ready()) {
        const auto launch_on = [&](cudaStream_t on) { launch(on, state.prepacked); };
        if (++state.runs == runs_before_graph) state.graph = try_to_record(state.device, launch_on);
        if (!start(state.graph, queue)) launch_on(queue);
      } else {
        launch(queue, state.prepacked);
        state.set_prepacked_ready(true);
      }
    } catch (...) {  // what was queued before it failed still uses the workspace
      if (state.workspace) ignore_errors(cudaEventRecord(state.last_use, queue));
      throw;
    }
    if (state.workspace) FL_CUDA(cudaEventRecord(state.last_use, queue));
  });
}

#define FL_INSTANTIATE(Args) template void CapturedRun::run(const Kernel<Args>&, const Args&, void*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
