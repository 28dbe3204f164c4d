// The split of one operand, for the products of several calls.
#include "cuda/launch/lasting_memory.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/runtime/memory_pool.h"
#include "device/launches.h"

namespace fl::cuda {

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
