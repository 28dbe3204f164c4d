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

struct Extent {
  int64_t rows, cols, depth, batch;
};
inline Extent extent(const SgemmArgs& p) { return {p.m, p.n, p.k, p.batch}; }
inline Extent extent(const SgemvArgs& p) { return {p.m, 1, p.n, p.batch}; }
inline Extent extent(const TransposeArgs& p) { return {p.m, p.n, 1, p.batch}; }

// The depth of a transpose is no sum, and its result goes out as it is.
constexpr bool cut_depth(const TransposeArgs&) { return false; }
template <class Args>
constexpr bool cut_depth(const Args&) {
  return true;
}
struct Cuts {
  int64_t rows, cols, depth, groups;
};
inline Cuts cuts(const Extent& e, const OutOfCoreShape& s) {
  const auto parts = [](int64_t total, int64_t size) {
    return std::max<int64_t>(ceil_div(total, std::max<int64_t>(size, 1)), 1);
  };
  return {parts(e.rows, s.rows), parts(e.cols, s.cols), parts(e.depth, s.depths), parts(e.batch, s.problems)};
}

}  // namespace fl
