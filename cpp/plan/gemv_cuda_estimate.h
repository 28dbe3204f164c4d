// What the GPU's SGEMV kernels took on an H200, in microseconds: fitted to the shapes of docs/gemv_transpose.md and to
// 100 random ones, of any order, leading dimension and alignment.
//
// Frozen: column_row() chooses by these figures, and with the kernel the order of a sum. Costs that are fitted again
// belong into cost/gemv_cuda_cost.cpp, which has these so far.
#pragma once

#include "core/problem.h"

namespace fl {

double gemv_bytes(const SgemvArgs& p);                           // of A
double gemv_rows(const SgemvArgs& p);                            // of all problems
double gemv_rate(const SgemvArgs& p, double memory, double l2);  // bytes per microsecond: l2 while A stays there
bool few_long_rows(const SgemvArgs& p);                          // so that a block shares each

double short_rows_estimate(const SgemvArgs& p);
double long_rows_estimate(const SgemvArgs& p);
double any_rows_estimate(const SgemvArgs& p);
double cluster_columns_estimate(const SgemvArgs& p);
double split_columns_estimate(const SgemvArgs& p);
double short_columns_estimate(const SgemvArgs& p);

}  // namespace fl
