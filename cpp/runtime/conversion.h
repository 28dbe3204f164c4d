// Whole arrays of other types as float32, by all threads.
#pragma once

#include <cstdint>
#include <vector>

#include "core/element.h"
#include "core/export.h"

namespace fl {

struct StridedDim {
  int64_t size, stride;  // in elements
};

// The elements of an array, the last dimension fastest, one after the other to `to`. The first is seen at `from`.
FL_EXPORT void convert_array(const Stored& stored, const float* from, const std::vector<StridedDim>& dims, float* to);

}  // namespace fl
