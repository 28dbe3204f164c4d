#include "cuda/pipeline/pipeline.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "core/errors.h"
#include "core/operations.h"
#include "cuda/launch/operands.h"
#include "cuda/pipeline/pipeline_run.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "plan/prepacked_operand.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"
#include "table/prepacked.h"

namespace fl::cuda {
namespace {

// ---------------------------------------------------------------- what steps share
// Prepacked operands, where more than one step multiplies one.
struct Units {
  int64_t begin, end;
};
Units units(int64_t first, int64_t lines) { return {first / PREPACKED_UNIT, ceil_div(first + lines, PREPACKED_UNIT)}; }
std::vector<bool> none_of(int64_t lines) { return std::vector<bool>(std::size_t(units(0, lines).end)); }

// Whether some line of the operand is multiplied by two steps that read what is shared.
bool worth_keeping(const PanelPlan<SgemmArgs>& plan, const SgemmArgs& layout, const Kernel<SgemmArgs>* kernel,
                   Side side) {
  std::vector<bool> seen = none_of(side == Side::a ? layout.m : layout.n);
  for (const PanelStep<SgemmArgs>& step : plan.steps) {
    const Block& block = step.block;
    if (step.kernel != kernel || !reads_shared(*kernel, sub_problem(layout, block))) continue;
    const Units at = side == Side::a ? units(block.row, block.rows) : units(block.col, block.cols);
    const auto begin = seen.begin() + at.begin, end = seen.begin() + at.end;
    if (std::find(begin, end, true) != end) return true;
    std::fill(begin, end, true);
  }
  return false;
}

// Lines of these units, counted from the first, from the first to the last that are not ready. A device that shares a
// call with others finds some of a block missing: what those have split.
LineRange missing_units(const std::vector<bool>& ready, const Units& at) {
  const auto begin = ready.begin() + at.begin, end = ready.begin() + at.end;
  const auto first = std::find(begin, end, false);
  auto last = end;
  while (last != first && *(last - 1)) --last;
  return {PREPACKED_UNIT * (first - begin), PREPACKED_UNIT * (last - begin)};
}

PrepackedOperand part_of(const PrepackedOperand& whole, std::vector<bool>& ready, int64_t first, int64_t lines) {
  PrepackedOperand part = whole;
  const Units at = units(first, lines);
  part.first = first;
  part.missing = missing_units(ready, at);
  std::fill(ready.begin() + at.begin, ready.begin() + at.end, true);
  return part;
}

// For the steps of a plan that go to the row of its largest one. The others split for themselves.
class PrepackedSteps {
 public:
  PrepackedSteps(const PanelPlan<SgemmArgs>& plan, const SgemmArgs& layout) : kernel_(largest_step(plan).kernel) {
    const bool in_place = std::all_of(plan.steps.begin(), plan.steps.end(), [](const PanelStep<SgemmArgs>& step) {
      return step.block.row % PREPACKED_UNIT == 0 && step.block.col % PREPACKED_UNIT == 0;
    });
    if (plan.steps.size() < 2 || !in_place) return;
    if (worth_keeping(plan, layout, kernel_, Side::a)) a_ = prepacked_to_share(*kernel_, layout, Side::a);
    if (worth_keeping(plan, layout, kernel_, Side::b)) b_ = prepacked_to_share(*kernel_, layout, Side::b);
    a_ready_ = none_of(layout.m), b_ready_ = none_of(layout.n);
  }
  // Products alone have any.
  template <class Args>
  PrepackedSteps(const PanelPlan<Args>&, const Args&) {}

  std::size_t bytes() const { return a_.bytes + b_.bytes; }
  void place(char* memory) {
    if (a_.bytes) a_.memory = memory;
    if (b_.bytes) b_.memory = memory + a_.bytes;
  }
  // What the next step in the order of the plan finds and leaves; nothing before place().
  PrepackedOperands next(const PanelStep<SgemmArgs>& step, const SgemmArgs& args) {
    PrepackedOperands prepacked;
    if (step.kernel != kernel_ || !reads_shared(*kernel_, args)) return prepacked;
    const Block& block = step.block;
    if (a_.memory) prepacked.a = part_of(a_, a_ready_, block.row, block.rows);
    if (b_.memory) prepacked.b = part_of(b_, b_ready_, block.col, block.cols);
    return prepacked;
  }
  template <class Args>
  PrepackedOperands next(const PanelStep<Args>&, const Args&) {
    return {};
  }

 private:
  const Kernel<SgemmArgs>* kernel_ = nullptr;
  PrepackedOperand a_, b_;
  std::vector<bool> a_ready_, b_ready_;  // by PREPACKED_UNIT of lines
};

// ---------------------------------------------------------------- a plan on a device
TransposeArgs mirror_of(const SgemmArgs& args, const PanelStep<SgemmArgs>& step) {
  if (!step.mirrored) return {};
  const Block &block = step.block, image = mirror_image(block);
  const Matrix from = sub_problem(args, block).c, to = sub_problem(args, image).c;
  return {.m = block.rows, .n = block.cols, .a = {from.data, from.rs, from.cs, from.bs}, .b = to};
}
template <class Args>
TransposeArgs mirror_of(const Args&, const PanelStep<Args>&) {
  return {};
}

template <class Args>
std::vector<DeviceStep<Args>> device_steps(const PanelPlan<Args>& plan, const Args& args, PrepackedSteps& prepacked) {
  std::vector<DeviceStep<Args>> steps;
  steps.reserve(plan.steps.size());
  for (const PanelStep<Args>& step : plan.steps) {
    const Args part = sub_problem(args, step.block);
    steps.push_back({part, step.kernel, 0, prepacked.next(step, part), {}, mirror_of(args, step)});
  }
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

std::size_t bytes_of(const Block& block) { return std::size_t(block.elements()) * sizeof(float); }
template <class Args>
std::size_t bytes_in(const PanelPlan<Args>& plan) {
  std::size_t bytes = 0;
  for (const PanelLoad& load : plan.loads) bytes += bytes_of(load.block);
  return bytes;
}
template <class Args>
std::size_t bytes_out(const PanelPlan<Args>& plan) {
  std::size_t bytes = 0;
  for (const PanelStep<Args>& step : plan.steps) bytes += bytes_of(step.block) * (step.mirrored ? 2 : 1);
  return bytes;
}

// A square on the diagonal of a symmetric result has been computed whole. Where its products are not those of plain
// float32, the two triangles have different bits: one of them is mirrored in the caller's memory.
void mirror_squares(const PanelPlan<SgemmArgs>& plan, const SgemmArgs& host, const SgemmArgs& layout) {
  if (!layout.symmetric) return;
  constexpr int64_t tile = 32;
  for (const PanelStep<SgemmArgs>& step : plan.steps) {
    const Block& block = step.block;
    if (step.mirrored || block.rows == host.m || step.kernel->traits.strict) continue;
    const Matrix c = sub_problem(host, block).c;
    auto mirror_rows = [&](int64_t index, int) {
      const int64_t end = std::min(block.rows, (index + 1) * tile);
      for (int64_t j0 = 0; j0 < end; j0 += tile)
        for (int64_t i = index * tile; i < end; ++i)
          for (int64_t j = j0; j < std::min(i, j0 + tile); ++j)
            c.data[j * c.rs + i * c.cs] = c.data[i * c.rs + j * c.cs];
    };
    parallel_for(ceil_div(block.rows, tile), num_threads(), mirror_rows);
  }
}
template <class Args>
void mirror_squares(const PanelPlan<Args>&, const Args&, const Args&) {}

// What a plan takes on one device: memory for all operands of the call, whichever parts of them it uses.
template <class Args>
class PlanOnDevice {
 public:
  PlanOnDevice(const PanelPlan<Args>& plan, const Args& host, const Args& layout, int device, cudaStream_t stream,
               std::size_t devices)
      : args_(layout),
        on_(operands(host, args_)),
        old_output_(as_input(on_.output.host)),
        run_(device, stream, bytes_in(plan), bytes_out(plan), devices),
        memory_(device, device_bytes(on_) + workspace_bytes(plan, layout), stream) {
    work_.operands = memory_.data();
    work_.workspace = place(on_, memory_.data());
    PrepackedSteps prepacked(plan, layout);
    make_room(for_prepacked_, device, prepacked.bytes(), stream);
    if (for_prepacked_) prepacked.place(for_prepacked_->data());
    cut_up(plan, on_, old_output_, true, run_.sizes(), work_.copies);
    if (work_.copies.clear_output)
      FL_CUDA(cudaMemsetAsync(*on_.output.device, 0, device_bytes(on_.output.host), stream));
    work_.steps = device_steps(plan, args_, prepacked);
  }
  // Operands point into the arguments, and copies to the operands.
  PlanOnDevice(const PlanOnDevice&) = delete;
  PlanOnDevice& operator=(const PlanOnDevice&) = delete;

  DeviceWork<Args>& work() { return work_; }
  DevicePart<Args> part() const { return {run_, work_}; }
  const Lines<float>& output() const { return on_.output.host; }

 private:
  Args args_;
  Operands on_;
  Lines<const float> old_output_;
  PipelineRun run_;
  PoolBuffer memory_;
  std::optional<PoolBuffer> for_prepacked_;
  DeviceWork<Args> work_;
};

// The copies that a share passes on, and what its steps wait for, in copies where the share says loads.
template <class Args>
void connect(const DeviceShare<Args>& share, DeviceWork<Args>& work, const std::vector<const PanelCopies*>& copies) {
  std::size_t copy = 0;
  for (std::size_t load = 0; load < share.passed_on.size(); ++load)
    for (; copy < work.copies.load_ends[load]; ++copy) work.copies.loads[copy].passed_on = &share.passed_on[load];
  for (std::size_t step = 0; step < work.steps.size(); ++step)
    for (std::size_t device = 0; device < copies.size(); ++device) {
      const std::size_t loads = share.received[step][device];
      work.steps[step].received.push_back(loads ? copies[device]->load_ends[loads - 1] : 0);
    }
}

}  // namespace

template <class Args>
std::size_t workspace_bytes(const PanelPlan<Args>& plan, const Args& layout) {
  std::size_t bytes = 0;
  for (const PanelStep<Args>& step : plan.steps)
    bytes = std::max(bytes, step.kernel->workspace(sub_problem(layout, step.block)));
  return bytes;
}

// In the order of their numbers: two such calls that wait for pinned memory do not wait for each other.
template <class Args>
void run_pipelines(const std::vector<DeviceShare<Args>>& shares, const Args& host, const Args& layout,
                   std::span<const int> devices, std::span<const cudaStream_t> streams) {
  const AllowDuringCapture allow;
  std::deque<PlanOnDevice<Args>> on_devices;
  std::vector<const PanelCopies*> copies;
  std::vector<DevicePart<Args>> parts;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const DeviceGuard guard(devices[i]);
    on_devices.emplace_back(shares[i].plan, host, layout, devices[i], streams[i], shares.size());
    copies.push_back(&on_devices.back().work().copies);
    parts.push_back(on_devices.back().part());
  }
  if (shares.size() > 1)
    for (std::size_t i = 0; i < shares.size(); ++i) connect(shares[i], on_devices[i].work(), copies);
  carry_out(parts, on_devices.front().output());
  mirror_squares(shares.front().plan, host, layout);  // of one device alone
}

#define FL_INSTANTIATE(Args)                                                                                         \
  template std::size_t workspace_bytes(const PanelPlan<Args>&, const Args&);                                         \
  template void run_pipelines(const std::vector<DeviceShare<Args>>&, const Args&, const Args&, std::span<const int>, \
                              std::span<const cudaStream_t>);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
