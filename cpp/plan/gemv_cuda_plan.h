// The GPU's SGEMV: what its rules and its kernels have to agree on. What decides the order of a sum depends on the call
// and on frozen constants alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

// How sgemv_split_columns cuts A, whose columns are contiguous.
struct SplitColumnsPlan {
  int outputs;       // per block
  bool vectors;      // columns are read as float4
  int splits;        // ranges of the columns
  unsigned columns;  // in each range but the last
};
SplitColumnsPlan split_columns_plan(const SgemvArgs& p);
std::size_t split_columns_workspace(const SgemvArgs& p);

// Whether A in 16 bits lies as its float32 copy would: threads then find their share of it in the same places.
bool read_as_copied(const SgemvArgs& p);

}  // namespace fl
