// The order of the sums of precision="reproducible": docs/reproducible.md.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem.h"

namespace fl {

// Chains of FMAs over so many k, whose sums are added in ascending order. A part of the specification.
constexpr int64_t REPRODUCIBLE_BLOCK = 256;

inline int64_t reproducible_depth(const SgemmArgs& p) {
  return std::min(p.k, REPRODUCIBLE_BLOCK) + std::max<int64_t>(ceil_div(p.k, REPRODUCIBLE_BLOCK) - 1, 0);
}

}  // namespace fl
