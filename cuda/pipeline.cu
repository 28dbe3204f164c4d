#include "pipeline.h"

#include <algorithm>
#include <vector>

#include "check.h"
#include "device_guard.h"
#include "memory_pool.h"
#include "pipeline_run.h"
#include "placement.h"

namespace fl::cuda {
namespace {

template <class Args>
std::vector<DeviceStep<Args>> device_steps(const PanelPlan<Args>& plan, const Args& args) {
  std::vector<DeviceStep<Args>> steps;
  steps.reserve(plan.steps.size());
  for (const PanelStep<Args>& step : plan.steps) steps.push_back({sub_problem(args, step.block), step.row});
  return steps;
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
    bytes = std::max(bytes, step.row->workspace(sub_problem(layout, step.block)));
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
  const Lines<const float> old_output = as_input(output);
  PanelCopies copies;
  cut_up(plan, on, old_output, true, run.sizes(), copies);
  if (copies.clear_output) FL_CUDA(cudaMemsetAsync(*on.output.device, 0, device_bytes(output), stream));
  run.carry_out(device_steps(plan, args), copies, workspace, output);
}

#define FL_INSTANTIATE(Args)                                                 \
  template std::size_t workspace_bytes(const PanelPlan<Args>&, const Args&); \
  template void run_pipeline(const PanelPlan<Args>&, const Args&, const Args&, int, cudaStream_t);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
