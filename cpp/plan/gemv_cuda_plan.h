// The GPU's SGEMV: what its rules and its kernels have to agree on.
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
ColumnRow column_row(const SgemvArgs& p);  // the fastest of these rows
std::size_t column_on_cuda_workspace(const SgemmArgs& p);
double column_on_cuda_cost(const SgemmArgs& p);

double short_rows_cost(const SgemvArgs& p);
double long_rows_cost(const SgemvArgs& p);
double cluster_columns_cost(const SgemvArgs& p);
double any_rows_cost(const SgemvArgs& p);
double split_columns_cost(const SgemvArgs& p);
double short_columns_cost(const SgemvArgs& p);
double warp_per_row_cost(const SgemvArgs& p);
double warp_per_row_vec4_cost(const SgemvArgs& p);
double rows_per_warp_cost(const SgemvArgs& p);
double rows_per_warp_vec4_cost(const SgemvArgs& p);

}  // namespace fl
