#include "cuda/pipeline/prepacked_steps.h"

#include <algorithm>

#include "table/prepacked.h"

namespace fl::cuda {
namespace {

struct Units {
  std::size_t begin, end;
};
Units units(int64_t first, int64_t lines) {
  return {std::size_t(first / PREPACKED_UNIT), std::size_t(ceil_div(first + lines, PREPACKED_UNIT))};
}

// Whether some line of the operand is multiplied by two steps.
bool worth_keeping(const PanelPlan<SgemmArgs>& plan, const Kernel<SgemmArgs>* kernel, int64_t lines, Side side) {
  std::vector<bool> seen(units(0, lines).end);
  for (const PanelStep<SgemmArgs>& step : plan.steps) {
    if (step.kernel != kernel) continue;
    const Block& block = step.block;
    const Units at = side == Side::a ? units(block.row, block.rows) : units(block.col, block.cols);
    if (std::find(seen.begin() + int64_t(at.begin), seen.begin() + int64_t(at.end), true) !=
        seen.begin() + int64_t(at.end))
      return true;
    std::fill(seen.begin() + int64_t(at.begin), seen.begin() + int64_t(at.end), true);
  }
  return false;
}

// Lines of these units, counted from the first, from the first to the last that are not ready. A device that shares a
// call with others finds some of a block missing: what those have split.
LineRange missing_units(const std::vector<bool>& ready, const Units& at) {
  const auto begin = ready.begin() + int64_t(at.begin), end = ready.begin() + int64_t(at.end);
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
  std::fill(ready.begin() + int64_t(at.begin), ready.begin() + int64_t(at.end), true);
  return part;
}

}  // namespace

PrepackedSteps::PrepackedSteps(const PanelPlan<SgemmArgs>& plan, const SgemmArgs& layout)
    : kernel_(largest_step(plan).kernel) {
  const bool in_place = std::all_of(plan.steps.begin(), plan.steps.end(), [](const PanelStep<SgemmArgs>& step) {
    return step.block.row % PREPACKED_UNIT == 0 && step.block.col % PREPACKED_UNIT == 0;
  });
  if (plan.steps.size() < 2 || !in_place) return;
  if (worth_keeping(plan, kernel_, layout.m, Side::a)) a_ = prepacked_to_share(*kernel_, layout, Side::a);
  if (worth_keeping(plan, kernel_, layout.n, Side::b)) b_ = prepacked_to_share(*kernel_, layout, Side::b);
  a_ready_.resize(units(0, layout.m).end), b_ready_.resize(units(0, layout.n).end);
}

void PrepackedSteps::place(char* memory) {
  if (a_.bytes) a_.memory = memory;
  if (b_.bytes) b_.memory = memory + a_.bytes;
}

PrepackedOperands PrepackedSteps::next(const PanelStep<SgemmArgs>& step) {
  PrepackedOperands prepacked;
  if (step.kernel != kernel_) return prepacked;
  const Block& block = step.block;
  if (a_.memory) prepacked.a = part_of(a_, a_ready_, block.row, block.rows);
  if (b_.memory) prepacked.b = part_of(b_, b_ready_, block.col, block.cols);
  return prepacked;
}

}  // namespace fl::cuda
