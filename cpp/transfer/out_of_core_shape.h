// The tiles of a call whose operands do not fit on the device, their sizes, and what the operations share there.
#pragma once

#include <algorithm>
#include <cstddef>
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

// Sizes of the largest tile, and how many of each operand are on the device at once. The rows and columns of a
// transpose are those of its operand; a matrix-vector product has one column.
struct OutOfCoreShape {
  int64_t problems = 1, rows = 0, cols = 0, depths = 0;
  int input_slots[2] = {1, 1}, output_slots = 1;
  int64_t slice_rows = 0;      // a tile is computed in slices of so many rows where its sums begin and where they end
  bool rows_outermost = true;  // the panels of B pass by each panel of A, or the other way round
  std::size_t bytes = 0;       // of all slots and the workspace; 0: nothing fits
};

// The largest tile, as a call on its own.
inline OutOfCoreTile largest_tile(const OutOfCoreShape& s) {
  return {Part{.problems = s.problems, .rows = s.rows, .cols = s.cols, .depths = s.depths}};
}

// The shape whose plan is expected to end first of those that take at most `memory` bytes.
template <class Args>
OutOfCoreShape choose_out_of_core_shape(const Args& layout, std::size_t memory, const KernelFor<Args>& kernel_for);

struct Cuts {
  int64_t rows, cols, depth, groups;
};
inline Cuts cuts(const Part& whole, const OutOfCoreShape& s) {
  const auto parts = [](int64_t total, int64_t size) {
    return std::max<int64_t>(ceil_div(total, std::max<int64_t>(size, 1)), 1);
  };
  return {parts(whole.rows, s.rows), parts(whole.cols, s.cols), parts(whole.depths, s.depths),
          parts(whole.problems, s.problems)};
}

}  // namespace fl
