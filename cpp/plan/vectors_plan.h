// A product with few rows or columns as products of the long operand with vectors, which SGEMV's kernels take as a
// batch that shares its matrix.
#pragma once

#include <cstddef>

#include "plan/tall_skinny_plan.h"

namespace fl {

// Launches of a batch each: of the vectors of a problem or, where there are more problems than vectors, of the same
// vector of all problems.
struct VectorsPlan {
  SgemvArgs first;
  int64_t launches, a, x, y;  // how far on the operands of the next launch are

  SgemvArgs at(int64_t launch) const {
    SgemvArgs one = first;
    one.a.data += launch * a, one.x.data += launch * x, one.y.data += launch * y;
    return one;
  }
};

inline VectorsPlan vectors_plan(const SgemmArgs& p) {
  const SgemmArgs left = long_operand_left(p);
  SgemvArgs one{.m = left.m,
                .n = left.k,
                .batch = left.n,
                .alpha = p.alpha,
                .beta = p.beta,
                .a = {left.a.data, left.a.rs, left.a.cs, 0},
                .x = {left.b.data, left.b.rs, left.b.cs},
                .y = {left.c.data, left.c.rs, left.c.cs}};
  if (left.batch <= left.n) return {one, left.batch, left.a.bs, left.b.bs, left.c.bs};
  one.batch = left.batch;
  one.a.bs = left.a.bs, one.x.bs = left.b.bs, one.y.bs = left.c.bs;
  return {one, left.n, 0, left.b.cs, left.c.cs};
}

template <std::size_t (*OF_SGEMV)(const SgemvArgs&)>
std::size_t vectors_workspace(const SgemmArgs& p) {
  return OF_SGEMV(vectors_plan(p).first);
}

}  // namespace fl
