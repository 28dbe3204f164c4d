// What the steps of one call on host memory share: prepacked operands, where more than one of them multiplies one.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/prepacked_operand.h"
#include "transfer/panel_plan.h"

namespace fl::cuda {

// For the steps of a plan that go to the row of its largest one. The others split for themselves.
class PrepackedSteps {
 public:
  PrepackedSteps(const PanelPlan<SgemmArgs>& plan, const SgemmArgs& layout);
  // Products alone have any.
  template <class Args>
  PrepackedSteps(const PanelPlan<Args>&, const Args&) {}

  std::size_t bytes() const { return a_.bytes + b_.bytes; }
  void place(char* memory);
  // What the next step in the order of the plan finds and leaves; nothing before place().
  PrepackedOperands next(const PanelStep<SgemmArgs>& step);
  template <class Args>
  PrepackedOperands next(const PanelStep<Args>&) {
    return {};
  }

 private:
  const Kernel<SgemmArgs>* kernel_ = nullptr;
  PrepackedOperand a_, b_;
  std::vector<bool> a_ready_, b_ready_;  // by PREPACKED_UNIT of lines
};

}  // namespace fl::cuda
