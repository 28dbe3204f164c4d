#include "plan/strict/split_k_plan.h"

#include <algorithm>

#include "plan/reference_device.h"

namespace fl {
namespace {

// Frozen, in microseconds: fitted on an H200 once, and part of the specification of results since.
constexpr double REDUCTION_US = 2.6, REDUCTION_BYTES = 3e6;

double reduction_us(const SgemmArgs& p, int64_t splits) {
  if (splits == 1) return 0.0;
  return REDUCTION_US + double(splits) * double(p.m) * double(p.n) * double(p.batch) * 4 / REDUCTION_BYTES;
}

// What the reduction adds one after the other.
int64_t reduction_steps(int64_t splits) { return splits == 1 ? 0 : splits <= 16 ? splits : ceil_div(splits, 8) + 8; }

// The fewest ranges that keep sums within the limit on accurate products, if at most `most` can.
int64_t fewest_splits(const SgemmArgs& p, const SplitKRule& rule, int64_t most) {
  const int64_t limit = deepest_allowed(p);
  if (limit == any_depth) return 1;
  int64_t splits = ceil_div(p.k, rule.groups * limit);
  while (splits < most && depth_of_splits(p.k, rule, splits) > limit) ++splits;
  return std::min(splits, most);
}

}  // namespace

int64_t depth_of_splits(int64_t k, const SplitKRule& rule, int64_t splits) {
  const int64_t range = rule.range(k, splits);
  const int64_t chain =
      rule.whole_units ? ceil_div(range / rule.unit, rule.groups) * rule.unit : ceil_div(range, rule.groups);
  return chain + rule.groups - 1 + reduction_steps(splits);
}

// Of as many ranges as fill 0, 1, ... waves of multiprocessors, those that are expected to take the least time; the
// fewest of them if two take the same.
SplitKPlan split_k_plan(const SgemmArgs& p, const SplitKRule& rule) {
  SplitKPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = tiles_of(p, rule), units = ceil_div(p.k, rule.unit);
  if (tiles > rule.most_tiles || p.k <= rule.short_k) return plan;
  const int64_t most = units / rule.least_units, fewest = fewest_splits(p, rule, most);
  double least = 0;
  for (int64_t waves = 0; waves <= rule.most_waves; ++waves) {
    const int64_t wanted = std::clamp<int64_t>(waves * PLAN_MULTIPROCESSORS / tiles, fewest, most);
    const int64_t splits = ceil_div(units, ceil_div(units, wanted));
    const auto range = double(rule.range(p.k, splits)), blocks = double(ceil_div(tiles * splits, PLAN_MULTIPROCESSORS));
    const double us = range * rule.latency_k_us + blocks * (rule.tile_us + range * rule.k_us) + reduction_us(p, splits);
    if (waves == 0 || us < least) least = us, plan.splits = int(splits);
  }
  return plan;
}

}  // namespace fl
