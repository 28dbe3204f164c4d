// A product as that of its operands transposed, C^T = B^T A^T: the same memory with its strides swapped.
#pragma once

#include <utility>

#include "core/problem.h"

namespace fl {

inline SgemmArgs transposed(const SgemmArgs& p) {
  const auto turned = [](auto x) { return std::swap(x.rs, x.cs), x; };
  SgemmArgs t = p;
  t.m = p.n, t.n = p.m;
  t.a = turned(p.b), t.b = turned(p.a), t.c = turned(p.c), t.addend = turned(p.addend);
  std::swap(t.stored[0], t.stored[1]);
  return t;
}

}  // namespace fl
