#include "cost/gemv_cuda_cost.h"

#include <algorithm>

#include "core/device_spec.h"
#include "plan/gemv_cuda_estimate.h"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

// A ladder kernel on rows: warps of `together` rows, 5280 at a time, each needing a step for every `span` columns.
double ladder_rows(const SgemvArgs& p, double together, double span, double turn, double memory, double l2) {
  const double turns = std::max(1.0, gemv_rows(p) / (40 * h200_spec().multiprocessors * together));
  return 1.15 +
         std::max(gemv_bytes(p) / gemv_rate(p, memory, l2), (turns - 1) * turn + turns * 0.2 * double(p.n) / span);
}
// The same where a block shares each of a few long rows.
double ladder_shared_rows(const SgemvArgs& p, double memory, double block) {
  return 2.2 + gemv_bytes(p) / std::min(memory, gemv_rows(p) * block);
}

// A ladder kernel on columns: one block per slice of eight outputs and more, however long the columns' row is. Scalars
// reach no higher speed in L2 (251 x 10370 transposed: 6.9 us).
double ladder_columns(const SgemvArgs& p, double memory, double block) {
  const double blocks = double(ceil_div(p.m, 8)) * double(p.batch);
  const double start = 1.5 + 5e-4 * double(std::min<int64_t>(p.n, 4000));
  return start + gemv_bytes(p) / std::min(memory, blocks * block);
}

}  // namespace

double warp_per_row_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, gemv_rate(p, 3.2e6, 2e6), 27e3);
  if (few_long_rows(p)) return ladder_shared_rows(p, 2.6e6, 32e3);
  if (p.n <= 64) return ladder_rows(p, 4, 64, 0.8, 3e6, 3.5e6);
  return ladder_rows(p, 1, 128, 2.1, 3e6, 3.5e6) + (p.n > 256 ? 0.5 : 0);
}
double warp_per_row_vec4_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, p.n < 4096 ? 3.3e6 : 4.3e6, 58e3);
  if (few_long_rows(p)) return ladder_shared_rows(p, 4.15e6, 38e3);
  return p.n <= 256 ? ladder_rows(p, 4, 128, 1.4, 4.1e6, 7e6) : ladder_rows(p, 1, 512, 1.4, 4.5e6, 7e6);
}
double rows_per_warp_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, gemv_rate(p, 3.2e6, 2e6), 27e3) + 0.01;  // the same code
  const double lanes = p.n <= 1 ? 1 : (p.n <= 4 ? 4 : (p.n <= 8 ? 8 : (p.n <= 16 ? 16 : 32)));
  return ladder_rows(p, 128 / lanes, lanes, 0.5, 3.5e6, 5.3e6) + (p.n > 256 ? 0.5 : 0);
}
double rows_per_warp_vec4_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, p.n < 4096 ? 3.3e6 : 4.3e6, 58e3) + 0.01;
  return ladder_rows(p, p.n <= 32 ? 8 : 4, p.n <= 32 ? 32 : 128, 0.9, 4.1e6, 7e6);
}

// Those of the fast kernels are still the figures that choose among them for a product with one column.
double short_rows_cost(const SgemvArgs& p) { return short_rows_estimate(p); }
double long_rows_cost(const SgemvArgs& p) { return long_rows_estimate(p); }
double any_rows_cost(const SgemvArgs& p) { return any_rows_estimate(p); }
double cluster_columns_cost(const SgemvArgs& p) { return cluster_columns_estimate(p); }
double split_columns_cost(const SgemvArgs& p) { return split_columns_estimate(p); }
double short_columns_cost(const SgemvArgs& p) { return short_columns_estimate(p); }

double column_on_cuda_cost(const SgemmArgs& p) {
  const double one = column_estimate(column_of(p, 0));
  return p.m == 1 || p.n == 1 ? one : one * double(p.n) + 1e3;
}

}  // namespace fl
