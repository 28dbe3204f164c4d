#include "plan/gemv_cuda_plan.h"

#include <algorithm>
#include <utility>

#include "core/layout.h"
#include "plan/reference_device.h"

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

SplitRowsPlan split_rows_plan(const SgemvArgs& p) {
  if (p.a.cs != 1 || p.x.inc != 1 || p.batch != 1 || p.m < 1 || p.m > 64 || p.n < 1 << 16) return {};
  constexpr int64_t UNIT = 1024, LEAST = 8 * UNIT, ROWS = 4 * PLAN_MULTIPROCESSORS;
  const int64_t length = std::max(LEAST, ceil_div(p.m * p.n, ROWS * UNIT) * UNIT);
  return {static_cast<int>(p.n / length), length, p.n % length};
}

int long_rows_threads(const SgemvArgs& p, int64_t multiprocessors) {
  return p.m * p.batch <= 2 * multiprocessors && p.n >= 1024 * ROW_ELEMENTS ? 1024 : 256;
}

int blocks_per_row(const SgemvArgs& p, int64_t multiprocessors, int threads) {
  int cluster = 1;
  while (cluster < MAX_ROW_CLUSTER && p.m * p.batch * cluster * threads < 640 * multiprocessors &&
         cluster * threads * ROW_ELEMENTS < p.n)
    cluster *= 2;
  return cluster;
}

bool read_as_copied(const SgemvArgs& p) {
  const auto [inner, lines] = p.a.cs == 1 ? std::pair(p.n, p.m) : std::pair(p.m, p.n);
  const auto next = [&, lines = lines](int64_t stride) { return lines == 1 || ld(p.a) == stride; };
  const bool in_turn = next(inner) && (p.a.bs == 0 || p.a.bs == inner * lines);
  const bool side_by_side = p.a.bs == inner && next(inner * p.batch);
  // Four numbers are one load, which no line may begin within, nor the first of all.
  return unit_stride(p.a) && (in_turn || side_by_side) && aligned<4>(p.a.data);
}

std::size_t split_columns_workspace(const SgemvArgs& p) {
  const int splits = p.a.cs == 1 ? split_rows_plan(p).sums() : split_columns_plan(p).splits;
  return splits <= 1 ? 0 : std::size_t(splits) * std::size_t(p.m) * std::size_t(p.batch) * sizeof(float);
}

}  // namespace fl
