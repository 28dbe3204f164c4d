// One step of a call on operands in host memory that do not fit on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/panel_plan.h"

namespace fl {

// A part of a call, and where its operands lie on the device.
struct OutOfCoreTile : Part {
  int input_slot[2] = {0, 0};   // where the operands lie
  bool load[2] = {true, true};  // or lie already
  int output_slot = 0;
  bool first = true, last = true;    // of the sums of its elements
  std::vector<int64_t> slices = {};  // first rows of what is computed in one step, then the end
};

// The part of a call on whatever its pointers and strides refer to. From a sum's second part on it adds to the result.
template <class Args>
Args sub_problem(const Args& p, const OutOfCoreTile& tile) {
  Args sub = sub_problem(p, static_cast<const Part&>(tile));
  if constexpr (requires { sub.beta; })
    if (!tile.first) sub.beta = 1.0f;
  return sub;
}

}  // namespace fl
