// A run that is repeated: its workspace, the prepacked of operands that stay, and the run itself as a CUDA graph.
#include "core/operations.h"
#include "cuda/launch/graph.h"
#include "cuda/launch/lasting_memory.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/launch/placement.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"
#include "device/launches.h"

namespace fl::cuda {

struct CapturedRun::State {
  int device;
  PrepackedOperands prepacked;
  LastingMemory memory;  // the workspace, and the prepacked operands behind it
  GraphExec graph = nullptr;
  int runs = 0;  // since the arguments changed

  bool prepacked_ready() const {
    return (!prepacked.a.memory || prepacked.a.ready()) && (!prepacked.b.memory || prepacked.b.ready());
  }
  void set_prepacked_ready(bool ready) {
    prepacked.a.set_ready(ready);
    prepacked.b.set_ready(ready);
  }
};

CapturedRun::CapturedRun(std::size_t workspace_bytes, const PrepackedOperands& prepacked, int device)
    : state_(new State{.device = device,
                       .prepacked = prepacked,
                       .memory = {device, aligned(workspace_bytes) + aligned(prepacked.a.bytes) + prepacked.b.bytes}}) {
  char* const behind = state_->memory.data() + aligned(workspace_bytes);
  if (prepacked.a.bytes) state_->prepacked.a.memory = behind;
  if (prepacked.b.bytes) state_->prepacked.b.memory = behind + aligned(prepacked.a.bytes);
}

// A graph may be destroyed while it runs.
CapturedRun::~CapturedRun() {
  if (device_count() == 0) {  // a child of fork cannot even destroy it
    static_cast<void>(state_->graph.release());
    return;
  }
  const DeviceGuard guard(state_->device, std::nothrow);
  const AllowDuringCapture allow;
  state_->graph.reset();
}

void CapturedRun::forget() {
  state_->runs = 0;
  if (!state_->graph) return;
  const DeviceGuard guard(state_->device);
  cuda::forget(state_->graph);
}

void CapturedRun::forget_prepacked() { state_->set_prepacked_ready(false); }

template <class Args>
void CapturedRun::run(const Kernel<Args>& kernel, const Args& args, void* stream) {
  State& state = *state_;
  const auto launch = [&](cudaStream_t on, const PrepackedOperands& prepacked) {
    launch_kernel(kernel, args, state.device, state.memory.data(), on, &prepacked, true);
  };
  queue_on_device(kernel, state.device, stream, [&](cudaStream_t queue) {
    // A graph that is launched at any time must not write what is kept: it reads the prepacked that are there, or makes
    // its own in the workspace.
    if (is_capturing(queue)) return launch(queue, state.prepacked_ready() ? state.prepacked : PrepackedOperands{});
    state.memory.use(queue, [&] {
      if (state.prepacked_ready()) {
        const auto launch_on = [&](cudaStream_t on) { launch(on, state.prepacked); };
        if (++state.runs == runs_before_graph) state.graph = try_to_record(state.device, launch_on);
        if (!start(state.graph, queue)) launch_on(queue);
      } else {
        launch(queue, state.prepacked);
        state.set_prepacked_ready(true);
      }
    });
  });
}

#define FL_INSTANTIATE(Args) template void CapturedRun::run(const Kernel<Args>&, const Args&, void*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
