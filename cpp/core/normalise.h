// Brings a call to the one form that dispatch and the kernels are written for.
#pragma once

#include "core/problem.h"

namespace fl {

// Each returns false if there is nothing left to do.
//  - an empty result, or one that stays as it is (beta == 1 and no product), is done
//  - alpha == 0 becomes k == 0: A and B are not read
//  - a stride along a dimension of size 1, or of an empty operand, means nothing: one that makes the operand BLAS-like
//    takes its place
//  - a column-major C becomes a row-major one: C^T = B^T A^T
//  - a matrix times its own transpose is marked as such (SgemmArgs::symmetric)
//  - an operand in 16 bits is seen at the address of its first number
FL_EXPORT bool normalise(SgemmArgs& p);
FL_EXPORT bool normalise(SgemvArgs& p);
FL_EXPORT bool normalise(TransposeArgs& p);

// Whether A and B change places for that.
bool swaps_operands(const SgemmArgs& p);
template <class Args>
bool swaps_operands(const Args&) {
  return false;
}

// The strides of a copy without gaps in the order in which the elements lie, which astype makes of an array. One matrix
// for a whole batch stays one.
ConstMatrix copied_densely(const ConstMatrix& x, int64_t rows, int64_t cols, int64_t batch);

}  // namespace fl
