// Tall-skinny products on the GPU, a long operand times at most 16 columns: what the rules and the kernels have to
// agree on. The plan decides the order of the sums, so it depends on the call and on frozen constants alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

// The same product with the longer of A and B on the left: C^T = B^T A^T where B is. The result may be column-major.
SgemmArgs long_operand_left(const SgemmArgs& p);

// How the left operand is cut. Both kernels keep 16 warps of 128 registers on a multiprocessor. Large products with 16
// columns have half as many with twice the rows each (`wide`): a value of the right operand serves twice the FMAs.
struct TallSkinnyPlan {
  bool rows;    // k is contiguous in the left operand, else the outputs are
  int columns;  // of a panel of the right operand: 2, 4, 8 or 16
  bool wide;
  int warps;  // per block. They share the rows of a block (8 or 16 each), or k where the outputs are contiguous
  int64_t row_blocks;  // of rows, one per block
  int64_t panels;      // one unless there are more than 16 columns
  int splits;          // ranges of k
  int64_t split_k;     // in each range but the last

  int resident_warps() const { return wide ? 8 : 16; }  // on a multiprocessor
  int rows_of_warp() const { return 128 / resident_warps(); }
};
TallSkinnyPlan tall_skinny_plan(const SgemmArgs& left);  // of long_operand_left()

// The long operand is too large for L2: a few percent matter then more than the start of a launch.
bool reads_from_memory(const SgemmArgs& p);

// The right operand of long_operand_left() can be: its rows, where they are contiguous, in whole fours of columns.
bool right_aligned16(const SgemmArgs& left, const TallSkinnyPlan& plan);

// What ranges of k store for the kernel that adds them: nothing if there is one.
std::size_t sums_workspace(const SgemmArgs& p, int splits);
std::size_t tall_skinny_workspace(const SgemmArgs& p);

}  // namespace fl
