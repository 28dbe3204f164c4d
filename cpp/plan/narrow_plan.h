// Narrow products on the GPU, a matrix times a few columns that blocks keep in shared memory: what the costs and the
// kernels have to agree on. The plan decides the order of the sums, so it depends on the call and on frozen constants
// alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

constexpr int NARROW_WARPS = 16;  // of a block, or half as many
// How much of the right operand a block keeps, in fours of columns; a range of k is filled up to whole units.
constexpr int NARROW_FOURS = 2048, NARROW_UNIT = 128;
constexpr int narrow_most_k(int fours) { return NARROW_FOURS / fours / NARROW_UNIT * NARROW_UNIT; }

struct NarrowPlan {
  bool rows;          // k is contiguous in the left operand, else the outputs are
  int panel_columns;  // of the right operand at most
  int fours;          // of columns in a panel
  int block_rows;
  int ranges;          // of k in a block, one for each warp or for some that take different rows
  int64_t row_blocks;  // of the left operand
  int64_t panels;      // of the right operand, each of which reads the left one
  int splits;          // of k, over blocks
  int64_t split_k;     // in each but the last

  int64_t blocks(const SgemmArgs& left) const { return row_blocks * panels * left.batch * splits; }
};
NarrowPlan narrow_plan(const SgemmArgs& left);  // of long_operand_left()

std::size_t narrow_workspace(const SgemmArgs& p);

}  // namespace fl
