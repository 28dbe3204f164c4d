#include "cuda/pipeline/pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/operations.h"
#include "cuda/launch/placement.h"
#include "cuda/pipeline/pipeline_run.h"
#include "cuda/pipeline/prepacked_steps.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"

namespace fl::cuda {
namespace {

template <class Args>
std::vector<DeviceStep<Args>> device_steps(const PanelPlan<Args>& plan, const Args& args, PrepackedSteps& prepacked) {
  std::vector<DeviceStep<Args>> steps;
  steps.reserve(plan.steps.size());
  for (const PanelStep<Args>& step : plan.steps)
    steps.push_back({sub_problem(args, step.block), step.kernel, 0, prepacked.next(step)});
  return steps;
}

// What is shared only saves time: without it each step prepacked its operands.
void make_room(std::optional<PoolBuffer>& memory, int device, std::size_t bytes, cudaStream_t stream) {
  try {
    if (bytes > 0) memory.emplace(device, bytes, stream);
  } catch (const OutOfMemory&) {
    memory.reset();
  }
}

std::size_t bytes_in(const Operands& on) {
  std::size_t bytes = on.output.read ? device_bytes(on.output.host) : 0;
  for (const Input& input : on.inputs) bytes += device_bytes(input.host);
  return bytes;
}

}  // namespace

template <class Args>
std::size_t workspace_bytes(const PanelPlan<Args>& plan, const Args& layout) {
  std::size_t bytes = 0;
  for (const PanelStep<Args>& step : plan.steps)
    bytes = std::max(bytes, step.kernel->workspace(sub_problem(layout, step.block)));
  return bytes;
}

template <class Args>
void run_pipeline(const PanelPlan<Args>& plan, const Args& host, const Args& layout, int device, cudaStream_t stream) {
  const AllowDuringCapture allow;
  Args args = layout;
  const Operands on = operands(host, args);
  const Lines<float>& output = on.output.host;
  const PipelineRun run(device, stream, bytes_in(on), device_bytes(output));
  const PoolBuffer memory(device, device_bytes(on) + workspace_bytes(plan, layout), stream);
  char* const workspace = place(on, memory.data());
  PrepackedSteps prepacked(plan, layout);
  std::optional<PoolBuffer> for_prepacked;
  make_room(for_prepacked, device, prepacked.bytes(), stream);
  if (for_prepacked) prepacked.place(for_prepacked->data());
  const Lines<const float> old_output = as_input(output);
  PanelCopies copies;
  cut_up(plan, on, old_output, true, run.sizes(), copies);
  if (copies.clear_output) FL_CUDA(cudaMemsetAsync(*on.output.device, 0, device_bytes(output), stream));
  run.carry_out(device_steps(plan, args, prepacked), copies, workspace, output);
}

#define FL_INSTANTIATE(Args)                                                 \
  template std::size_t workspace_bytes(const PanelPlan<Args>&, const Args&); \
  template void run_pipeline(const PanelPlan<Args>&, const Args&, const Args&, int, cudaStream_t);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
