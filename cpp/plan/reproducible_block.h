// The one number in the order of the sums of precision="reproducible" (docs/reproducible.md).
#pragma once

#include <cstdint>

namespace fl {

// Chains of FMAs over so many k, whose sums are added in ascending order. A part of the specification.
constexpr int64_t REPRODUCIBLE_BLOCK = 256;

}  // namespace fl
