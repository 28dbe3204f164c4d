// How a call on operands in host memory that do not fit on the device is cut up: tiles of the result that stay on the
// device while panels of the operands pass by. A function of the call and of the memory alone, so that results can be
// repeated. cuda/pipeline/tiles.cu carries a plan out; docs/host_pipeline.md tells what it costs.
#pragma once

#include <cstddef>
#include <vector>

#include "transfer/tile_shape.h"

namespace fl {

// A part of a call, and where its operands lie on the device.
struct OutOfCoreTile : Part {
  int input_slot[2] = {0, 0};   // where the operands lie
  bool load[2] = {true, true};  // or lie already
  int output_slot = 0;
  bool first = true, last = true;    // of the sums of its elements
  std::vector<int64_t> slices = {};  // first rows of what is computed in one step, then the end
};

template <class Args>
struct TilePlan {
  TileShape shape;
  std::vector<OutOfCoreTile> tiles;  // in the order of execution
};

// The part of a call on whatever its pointers and strides refer to. From a sum's second part on it adds to the result.
SgemmArgs sub_problem(const SgemmArgs& p, const OutOfCoreTile& tile);
SgemvArgs sub_problem(const SgemvArgs& p, const OutOfCoreTile& tile);

// The largest tile, as a call on its own.
OutOfCoreTile largest_tile(const TileShape& shape);

// The plan that is expected to end first of those that take at most `memory` bytes on the device, or none: a plan
// without tiles. `layout` has the strides that the operands would get there.
template <class Args>
FL_EXPORT TilePlan<Args> plan_tiles(const Args& layout, std::size_t memory, const RowFor<Args>& row_for);

}  // namespace fl
