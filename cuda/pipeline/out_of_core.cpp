#include "cuda/pipeline/pipeline.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "core/operations.h"
#include "cuda/launch/operands.h"
#include "cuda/pipeline/pipeline_run.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "device/host_calls.h"

namespace fl::cuda {
namespace {

// ---------------------------------------------------------------- one tile as a plan of panels, one for each slice
// The rows of the result lie as far apart in every tile, so that a slice has the same place in each.
void fix_rows(SgemmArgs& layout, const SgemmArgs& largest) {
  if (layout.batch == 1) layout.c.rs = largest.c.rs;
}
template <class Args>
void fix_rows(Args&, const Args&) {}

template <class Args>
struct PreparedTile {
  PreparedTile(const OutOfCoreTile& tile, const Args& host, const Args& largest, const KernelFor<Args>& kernel_for)
      : tile(tile), args(device_layout(host)) {
    fix_rows(args, largest);
    on = operands(host, args);
    on.output.read = on.output.read && tile.first;
    old_output = as_input(on.output.host);
    Part slice = whole(args);
    if (tile.load[1]) panels.loads.push_back({OperandRole::b, block_of(args, OperandRole::b, slice)});
    for (std::size_t i = 0; i + 1 < tile.slices.size(); ++i) {
      slice.row = tile.slices[i], slice.rows = tile.slices[i + 1] - slice.row;
      if (tile.load[0]) panels.loads.push_back({OperandRole::a, block_of(args, OperandRole::a, slice)});
      const Block result = block_of(args, OperandRole::c, slice);
      if (on.output.read) panels.loads.push_back({OperandRole::c, result});
      const Args step = sub_problem(args, result);
      panels.steps.push_back({result, panels.loads.size(), &kernel_for(step), 0});
      workspace = std::max(workspace, panels.steps.back().kernel->workspace(step));
    }
  }
  // Operands point into the arguments.
  PreparedTile(const PreparedTile&) = delete;
  PreparedTile& operator=(const PreparedTile&) = delete;

  const OutOfCoreTile& tile;
  Args args;
  Operands on;
  Lines<const float> old_output;
  PanelPlan<Args> panels;
  std::size_t workspace = 0;
};

// ---------------------------------------------------------------- memory
struct Slots {
  std::size_t input[2], output;                   // bytes of one
  std::size_t input_begin[2], output_begin, end;  // where they begin
};

Slots slots_for(const Operands& largest, const OutOfCoreShape& shape) {
  Slots slots{};
  for (int i = 0; i < 2; ++i) {
    slots.input[i] = aligned(device_bytes(largest.inputs[std::size_t(i)].host));
    slots.input_begin[i] = slots.end;
    slots.end += slots.input[i] * std::size_t(shape.input_slots[i]);
  }
  slots.output = aligned(device_bytes(largest.output.host));
  slots.output_begin = slots.end;
  slots.end += slots.output * std::size_t(shape.output_slots);
  return slots;
}

void place(const OutOfCoreTile& tile, const Operands& on, const Slots& slots, char* memory) {
  for (int i = 0; i < 2; ++i)
    if (const Input& input = on.inputs[std::size_t(i)]; input.device)
      *input.device =
          reinterpret_cast<float*>(memory + slots.input_begin[i] + slots.input[i] * std::size_t(tile.input_slot[i]));
  *on.output.device =
      reinterpret_cast<float*>(memory + slots.output_begin + slots.output * std::size_t(tile.output_slot));
}

// ---------------------------------------------------------------- the order of what shares a slot
// What has to be done before a slot can be overwritten.
struct Gates {
  std::vector<std::size_t> read_by[2];              // inputs: by the first so many steps
  std::vector<std::vector<std::size_t>> left_with;  // outputs, by slice: with the first so many stores
};

template <class Args>
void add_tile(const PreparedTile<Args>& prepared, const CopySizes& sizes, Gates& gates, PanelCopies& copies,
              std::vector<DeviceStep<Args>>& steps) {
  const OutOfCoreTile& tile = prepared.tile;
  std::vector<std::size_t>& left_with = gates.left_with[std::size_t(tile.output_slot)];
  const std::size_t first_load = copies.loads.size(), first_step = steps.size();
  std::size_t store = copies.stores.size();
  cut_up(prepared.panels, prepared.on, prepared.old_output, tile.last, sizes, copies);
  for (std::size_t i = first_load; i < copies.loads.size(); ++i) {
    LoadCopy& load = copies.loads[i];
    for (int operand = 0; operand < 2; ++operand)
      if (load.host == &prepared.on.inputs[std::size_t(operand)].host)
        load.after_steps = gates.read_by[operand][std::size_t(tile.input_slot[operand])];
    if (load.host == &prepared.old_output && !left_with.empty()) load.after_stores = left_with.back();
  }
  const std::vector<PanelStep<Args>>& panel_steps = prepared.panels.steps;
  for (std::size_t slice = 0; slice < panel_steps.size(); ++slice) {
    const PanelStep<Args>& step = panel_steps[slice];
    const bool waits = tile.first && slice < left_with.size();
    steps.push_back({sub_problem(prepared.args, step.block), step.kernel, waits ? left_with[slice] : 0});
  }
  for (int operand = 0; operand < 2; ++operand)
    gates.read_by[operand][std::size_t(tile.input_slot[operand])] = steps.size();
  if (!tile.last) return;
  left_with.assign(panel_steps.size(), 0);
  for (std::size_t slice = 0; slice < panel_steps.size(); ++slice) {
    while (store < copies.stores.size() && copies.stores[store].step == first_step + slice) ++store;
    left_with[slice] = store;
  }
}

// ---------------------------------------------------------------- a device and its tiles
template <class Args>
struct PreparedTiles {
  PreparedTiles(const OutOfCorePlan<Args>& plan, const KernelFor<Args>& kernel_for, const Args& host)
      : largest_host(sub_problem(host, largest_tile(plan.shape))),
        largest(device_layout(largest_host)),
        slots(slots_for(operands(largest_host, largest), plan.shape)) {
    for (const OutOfCoreTile& tile : plan.tiles) {
      const PreparedTile<Args>& prepared = tiles.emplace_back(tile, sub_problem(host, tile), largest, kernel_for);
      workspace = std::max(workspace, prepared.workspace);
      for (int i = 0; i < 2; ++i)
        if (tile.load[i]) bytes_in += device_bytes(prepared.on.inputs[std::size_t(i)].host);
      if (tile.last) bytes_out += device_bytes(prepared.on.output.host);
    }
  }

  Args largest_host, largest;
  Slots slots;
  std::deque<PreparedTile<Args>> tiles;
  std::size_t workspace = 0, bytes_in = 0, bytes_out = 0;
};

template <class Args>
class TilesOnDevice {
 public:
  TilesOnDevice(const OutOfCorePlan<Args>& plan, const KernelFor<Args>& kernel_for, const Args& host, int device,
                cudaStream_t stream, std::size_t devices)
      : prepared_(plan, kernel_for, host),
        run_(device, stream, prepared_.bytes_in, prepared_.bytes_out, devices),
        memory_(device, prepared_.slots.end + prepared_.workspace, stream) {
    const Slots& slots = prepared_.slots;
    Gates gates;
    for (int i = 0; i < 2; ++i) gates.read_by[i].assign(std::size_t(plan.shape.input_slots[i]), 0);
    gates.left_with.resize(std::size_t(plan.shape.output_slots));
    for (PreparedTile<Args>& tile : prepared_.tiles) {
      place(tile.tile, tile.on, slots, memory_.data());
      add_tile(tile, run_.sizes(), gates, work_.copies, work_.steps);
    }
    if (work_.copies.clear_output)
      FL_CUDA(cudaMemsetAsync(memory_.data() + slots.output_begin, 0, slots.end - slots.output_begin, stream));
    work_.workspace = memory_.data() + slots.end;
  }
  DevicePart<Args> part() const { return {run_, work_}; }

 private:
  PreparedTiles<Args> prepared_;
  PipelineRun run_;
  PoolBuffer memory_;
  DeviceWork<Args> work_;
};

}  // namespace

template <class Args>
void run_out_of_core(std::span<const OutOfCorePlan<Args>> plans, const KernelFor<Args>& kernel_for, const Args& host,
                     std::span<const int> devices, std::span<const cudaStream_t> streams) {
  const AllowDuringCapture allow;
  std::deque<TilesOnDevice<Args>> on_devices;
  std::vector<DevicePart<Args>> parts;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const DeviceGuard guard(devices[i]);
    on_devices.emplace_back(plans[i], kernel_for, host, devices[i], streams[i], plans.size());
    parts.push_back(on_devices.back().part());
  }
  Args layout = device_layout(host);
  carry_out(parts, operands(host, layout).output.host);
}

#define FL_INSTANTIATE(Args)                                                                               \
  template void run_out_of_core(std::span<const OutOfCorePlan<Args>>, const KernelFor<Args>&, const Args&, \
                                std::span<const int>, std::span<const cudaStream_t>);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
