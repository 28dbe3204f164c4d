// How long the GPU's SGEMV kernels take.
#pragma once

#include "core/problem.h"

namespace fl {

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
