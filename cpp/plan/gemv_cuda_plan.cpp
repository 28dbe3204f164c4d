#include "plan/gemv_cuda_plan.h"

#include <algorithm>
#include <utility>

#include "core/layout.h"
#include "plan/reference_device.h"

namespace fl {
namespace {

// Frozen, in microseconds, and microseconds for a byte: measured on an H200 once, and part of the order of sums since.
constexpr double SPLIT_US = 1.3, EACH_SPLIT_US = 0.012, LARGE_BLOCK_US = 1, BLOCK_US = 0.0012, COLUMN_US = 0.036;
constexpr double NEAR_US = 1 / 6.6e6, MEMORY_US = 1 / 3.8e6, NEAR_FOURS_US = 1 / 5.8e6, MEMORY_FOURS_US = 1 / 4.4e6,
                 LARGE_BLOCK_READ_US = 1 / 0.12e6, SUM_US = 8 / 6e6;
constexpr double NEAR_BYTES = 40e6;

int64_t blocks_of(const SgemvArgs& p, const SplitColumnsPlan& plan) {
  return ceil_div(p.m, plan.outputs) * p.batch * plan.splits;
}
int64_t resident_blocks(const SplitColumnsPlan& plan) { return PLAN_MULTIPROCESSORS * 1024 / plan.threads; }

double columns_us(const SgemvArgs& p, const SplitColumnsPlan& plan) {
  const int64_t blocks = blocks_of(p, plan);
  const double outputs = double(p.m) * double(p.batch), bytes = 4.0 * outputs * double(p.n);
  const bool near = bytes <= NEAR_BYTES * (p.a.bs == 0 ? double(p.batch) : 1.0);  // one matrix for all of a batch
  const bool large = plan.threads == 1024;
  const double byte_us = plan.vectors ? near ? NEAR_FOURS_US : MEMORY_FOURS_US : near ? NEAR_US : MEMORY_US;
  const double each = double(ceil_div(blocks, PLAN_MULTIPROCESSORS));
  double read_us = bytes * byte_us * plan.sectors_read(near);
  if (large) read_us = std::max(read_us, each * 4.0 * plan.outputs * plan.columns * LARGE_BLOCK_READ_US);
  const double waits_us = COLUMN_US * double(plan.columns_of_thread() * ceil_div(blocks, resident_blocks(plan)));
  return (plan.splits > 1 ? SPLIT_US + plan.splits * (EACH_SPLIT_US + SUM_US * outputs) : 0.0) +
         (large ? LARGE_BLOCK_US * each : 0.0) + BLOCK_US * double(blocks) + std::max(read_us, waits_us);
}

// In about so many ranges, all blocks of which are resident at once.
SplitColumnsPlan in_ranges(const SgemvArgs& p, SplitColumnsPlan tile, int64_t ranges) {
  tile.splits = 1;
  const int64_t fitting = resident_blocks(tile) / blocks_of(p, tile);
  const int64_t splits = std::max<int64_t>({std::min(fitting, ranges), ceil_div(p.n, 1 << 30), 1});
  tile.columns = static_cast<unsigned>(std::max<int64_t>(ceil_div(p.n, splits), 1));
  tile.splits = static_cast<int>(std::max<int64_t>(ceil_div(p.n, tile.columns), 1));
  return tile;
}

}  // namespace

// One range, or 64, 32, 16 or 8 columns for a thread, which has eight loads in flight.
SplitColumnsPlan split_columns_plan(const SgemvArgs& p) {
  SplitColumnsPlan best{};
  double least = 0;
  const auto consider = [&](const SplitColumnsPlan& tile) {
    for (const int each : {0, 64, 32, 16, 8}) {
      const SplitColumnsPlan plan = in_ranges(p, tile, each ? p.n / (each * tile.groups) : 1);
      const double us = columns_us(p, plan);
      if (best.outputs == 0 || us < least) least = us, best = plan;
    }
  };
  if (!aligned16(p.a)) consider({128, false, 256, 2});
  else if (ceil_div(p.m, 512) * p.batch >= 3 * PLAN_MULTIPROCESSORS) consider({512, true, 256, 2});
  else if (p.m >= 1024) consider({256, true, 256, 4});
  else consider({128, true, 1024, 32});
  consider({32, false, 512, 16});
  consider({8, false, 512, 64});
  return best;
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
