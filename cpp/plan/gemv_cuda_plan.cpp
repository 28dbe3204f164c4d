#include "plan/gemv_cuda_plan.h"

#include <algorithm>
#include <limits>

#include "core/layout.h"
#include "plan/gemv_cuda_estimate.h"
#include "plan/gemv_plan.h"
#include "plan/reference_device.h"
#include "plan/tall_skinny_plan.h"

namespace fl {

SplitColumnsPlan split_columns_plan(const SgemvArgs& p) {
  struct Shape {
    int outputs, threads, groups;
  };
  const bool vectors = aligned16(p.a);
  const auto slices = [&](int outputs) { return ceil_div(p.m, outputs) * p.batch; };
  const Shape shape = [&]() -> Shape {
    if (!vectors) return p.m >= 1024 ? Shape{128, 256, 2} : (p.m > 16 ? Shape{32, 512, 16} : Shape{8, 512, 64});
    if (slices(512) >= 3 * PLAN_MULTIPROCESSORS) return {512, 256, 2};
    if (p.m >= 1024) return {256, 256, 4};
    return p.m > 32 ? Shape{128, 1024, 32} : Shape{8, 512, 256};
  }();
  // All blocks resident at once, and none without two full steps of eight loads per thread.
  const int64_t resident = PLAN_MULTIPROCESSORS * 1024 / shape.threads;
  const int64_t fitting = resident / slices(shape.outputs), useful = p.n / (16 * shape.groups);
  const int64_t splits = std::max<int64_t>({std::min(fitting, useful), ceil_div(p.n, 1 << 30), 1});
  const int64_t columns = std::max<int64_t>(ceil_div(p.n, splits), 1);
  return {shape.outputs, vectors, static_cast<int>(std::max<int64_t>(ceil_div(p.n, columns), 1)),
          static_cast<unsigned>(columns)};
}

std::size_t split_columns_workspace(const SgemvArgs& p) {
  if (p.a.cs == 1) return 0;
  const int splits = split_columns_plan(p).splits;
  return splits == 1 ? 0 : std::size_t(splits) * std::size_t(p.m) * std::size_t(p.batch) * sizeof(float);
}

// With one row of C the product is y = B^T a.
SgemvArgs column_of(const SgemmArgs& p, int64_t column) {
  return as_gemv(p.m == 1 && p.n > 1 ? long_operand_left(p) : p, column);
}

namespace {

struct Candidate {
  double us;
  ColumnRow row;
};

Candidate fastest_row(const SgemvArgs& p, bool clusters) {
  const auto less = [](const Candidate& x, const Candidate& y) { return x.us < y.us; };
  constexpr double never = std::numeric_limits<double>::infinity();
  return std::min(
      {Candidate{short_rows_estimate(p), ColumnRow::short_rows}, Candidate{long_rows_estimate(p), ColumnRow::long_rows},
       Candidate{any_rows_estimate(p), ColumnRow::any_rows},
       Candidate{clusters ? cluster_columns_estimate(p) : never, ColumnRow::cluster_columns},
       Candidate{split_columns_estimate(p), ColumnRow::split_columns},
       Candidate{short_columns_estimate(p), ColumnRow::short_columns}},
      less);
}

}  // namespace

ColumnRow column_row(const SgemvArgs& p, bool clusters) { return fastest_row(p, clusters).row; }
double column_estimate(const SgemvArgs& p, bool clusters) { return fastest_row(p, clusters).us; }

template <bool CLUSTERS>
std::size_t column_on_cuda_workspace(const SgemmArgs& p) {
  const SgemvArgs v = column_of(p, 0);
  return column_row(v, CLUSTERS) == ColumnRow::split_columns ? split_columns_workspace(v) : 0;
}
template std::size_t column_on_cuda_workspace<true>(const SgemmArgs& p);
template std::size_t column_on_cuda_workspace<false>(const SgemmArgs& p);

}  // namespace fl
