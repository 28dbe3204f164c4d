// What stays on a device from run to run: of a plan its workspace, the prepacked of operands, and the run itself as a
// CUDA graph; the split of an operand that products of several calls share.
#include "core/operations.h"
#include "cuda/launch/graph.h"
#include "cuda/launch/lasting_memory.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/launch/operands.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/launches.h"

namespace fl::cuda {

struct CapturedRun::State {
  int device;
  PrepackedOperands prepacked;
  LastingMemory memory;  // the workspace, and the prepacked operands behind it
  RepeatedWork repeated{device};

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

CapturedRun::~CapturedRun() = default;
void CapturedRun::forget() { state_->repeated.forget(); }
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
        state.repeated.run(queue, [&](cudaStream_t on) { launch(on, state.prepacked); });
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

// ---------------------------------------------------------------- shared by several calls
struct ConstantSplit::State {
  int device;
  Side side;
  PrepackedOperand prepacked;
  LastingMemory memory;
};

ConstantSplit::ConstantSplit(const PrepackedOperand& prepacked, Side side, int device)
    : state_(new State{.device = device, .side = side, .prepacked = prepacked, .memory = {device, prepacked.bytes}}) {
  state_->prepacked.memory = state_->memory.data();
}
ConstantSplit::~ConstantSplit() = default;

void ConstantSplit::run(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args, void* stream) {
  State& state = *state_;
  queue_on_device(kernel, state.device, stream, [&](cudaStream_t queue) {
    state.memory.use(queue, [&] {
      const PoolBuffer workspace(state.device, kernel.workspace(args), queue);
      PrepackedOperands prepacked;
      (state.side == Side::a ? prepacked.a : prepacked.b) = state.prepacked;
      launch_kernel(kernel, args, state.device, workspace.data(), queue, &prepacked);
      state.prepacked.set_ready(true);
    });
  });
}

}  // namespace fl::cuda
