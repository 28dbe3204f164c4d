// What the steps of one call on host memory share: the splits of operands that more than one of them multiplies.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/splits.h"
#include "transfer/panel_plan.h"

namespace fl::cuda {

// For the steps of a plan that go to the kernel of its largest one. The others split for themselves.
class StepSplits {
 public:
  StepSplits(const PanelPlan<SgemmArgs>& plan, const SgemmArgs& layout);
  // Products alone have any.
  template <class Args>
  StepSplits(const PanelPlan<Args>&, const Args&) {}

  std::size_t bytes() const { return a_.bytes + b_.bytes; }
  void place(char* memory);
  // What the next step in the order of the plan finds and leaves; nothing before place().
  KeptSplits next(const PanelStep<SgemmArgs>& step);
  template <class Args>
  KeptSplits next(const PanelStep<Args>&) {
    return {};
  }

 private:
  const Kernel<SgemmArgs>* kernel_ = nullptr;
  KeptSplit a_, b_;
  std::vector<bool> a_ready_, b_ready_;  // by SPLIT_UNIT of lines
};

}  // namespace fl::cuda
