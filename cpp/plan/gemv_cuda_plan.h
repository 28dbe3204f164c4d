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

// A product with one column, or one row, is a matrix-vector product.
SgemvArgs column_of(const SgemmArgs& p, int64_t column);
enum class ColumnRow { short_rows, long_rows, any_rows, cluster_columns, split_columns, short_columns };
// The kernel that is expected to be the fastest (gemv_cuda_estimate.h), with and without clusters of blocks, and its
// microseconds.
ColumnRow column_row(const SgemvArgs& p, bool clusters);
double column_estimate(const SgemvArgs& p, bool clusters);
template <bool CLUSTERS>
std::size_t column_on_cuda_workspace(const SgemmArgs& p);

}  // namespace fl
