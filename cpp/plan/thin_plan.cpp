#include "plan/thin_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/layout.h"

namespace fl {
namespace {

// Of the reference device: the cut is part of the specification of the result's bits, so it depends on the call alone.
constexpr int64_t multiprocessors = 132;
constexpr int64_t range = 128;  // of k: what a block does is a multiple of it

int panel_columns(int64_t n) { return n <= 2 ? 2 : (n <= 4 ? 4 : (n <= 8 ? 8 : 16)); }

int resident_warps(const ThinPlan& plan) { return plan.wide ? 8 : 16; }  // on a multiprocessor

bool is_large(const SgemmArgs& p) { return 4.0 * double(p.m) * double(p.k) * double(p.batch) >= 60e6; }

// Blocks of all resident warps read the right operand least often; smaller ones spread better, and hide each other's
// ends.
int rows_warps(const SgemmArgs& p, int resident) { return p.m > 64 && p.k >= 1024 && is_large(p) ? resident : 4; }

// As many ranges as fill the device once; and where there are a few waves of blocks, the
// number that fills the last one best.
int64_t count_splits(int64_t blocks, int64_t slots, int64_t k) {
  const int64_t useful = std::max<int64_t>(ceil_div(k, range), 1);
  if (blocks <= slots) return std::min(slots / blocks, useful);
  if (blocks >= 4 * slots) return 1;
  int64_t best = 1;
  for (int64_t s = 2; s <= std::min<int64_t>(useful, 4); ++s)
    if (1.1 * double(ceil_div(blocks * s, slots)) * double(best) < double(ceil_div(blocks * best, slots)) * double(s))
      best = s;
  return best;
}

// Of 9 to 16 columns that are not wide. Large ones were measured at ten shapes with k of 100 to 500: B goes without a
// question where all 16 columns exist, and others take twice the time of the long operand.
double sixteen_factor(const SgemmArgs& left, const ThinPlan& plan) {
  if (!is_large(left)) return 1.48;
  if (!plan.rows) return 1.78;
  return left.n < 16 ? 2.0 : left.b.cs == 1 ? 1.16 : 1.3;
}

}  // namespace

SgemmArgs long_operand_left(const SgemmArgs& p) {
  SgemmArgs left = p;
  if (p.m < p.n) {
    std::swap(left.m, left.n);
    left.a = {p.b.data, p.b.cs, p.b.rs, p.b.bs};
    left.b = {p.a.data, p.a.cs, p.a.rs, p.a.bs};
    left.c = {p.c.data, p.c.cs, p.c.rs, p.c.bs};
  }
  return left;
}

bool moves_by16(const ConstMatrix& x) { return aligned16(x); }

bool right_by16(const SgemmArgs& left, const ThinPlan& plan) {
  return moves_by16(left.b) && (left.b.cs != 1 || (left.n % 4 == 0 && plan.columns >= 4));
}

ThinPlan thin_plan(const SgemmArgs& p) {
  ThinPlan plan;
  plan.rows = p.a.cs == 1;
  plan.columns = panel_columns(p.n);
  plan.panels = ceil_div(p.n, plan.columns);
  plan.wide = plan.columns == 16 && p.m >= 1024 && p.k >= 1024 && is_large(p);
  const int resident = resident_warps(plan), each = 128 / resident;  // rows of a warp
  // Where the warps of a block share k, each has sums of its own to add at the end: worth 64 k and more, or 16 where
  // there is too little work for all multiprocessors and what counts is the time from the first load to the last sum.
  const bool fills = double(p.m) * double(p.k) * double(p.batch) >= 8e6;
  for (plan.warps = plan.rows ? rows_warps(p, resident) : resident;; plan.warps /= 2) {
    plan.strips = ceil_div(p.m, plan.rows ? each * plan.warps : 16 * each);
    const int64_t blocks = plan.strips * plan.panels * p.batch, slots = multiprocessors * (resident / plan.warps);
    const int64_t splits = std::max(ceil_div(p.k, int64_t{1} << 30), count_splits(blocks, slots, p.k));
    plan.split_k = std::max<int64_t>(ceil_div(ceil_div(p.k, splits), range) * range, range);
    plan.splits = static_cast<int>(std::max<int64_t>(ceil_div(p.k, plan.split_k), 1));
    if (plan.rows || plan.warps == 2 || plan.split_k >= (fills ? 64 : 16) * plan.warps) return plan;
  }
}

std::size_t thin_workspace(const SgemmArgs& p) {
  const int splits = thin_plan(long_operand_left(p)).splits;
  return splits == 1 ? 0 : std::size_t(splits) * std::size_t(p.m) * std::size_t(p.n) * std::size_t(p.batch) * 4;
}

// Fitted to 200 random shapes of up to 64 columns, and to 2 to 16 columns of up to 1 GB. Waves of blocks: what a
// multiprocessor can read. The end, where sums of many columns meet, is what remains of a short k.
double thin_cost(const SgemmArgs& p) {
  const SgemmArgs left = long_operand_left(p);
  const ThinPlan plan = thin_plan(left);
  if (plan.panels > 4) return 1e6;
  const double bytes = 4.0 * double(left.m) * double(p.k) * double(p.batch) * double(plan.panels);
  const double blocks = double(plan.strips) * double(plan.panels) * double(p.batch) * plan.splits;
  const int resident = resident_warps(plan), each = 128 / resident;
  const double waves = std::ceil(blocks / double(multiprocessors * (resident / plan.warps)));
  const double block_us = double(std::min(plan.split_k, p.k)) * (plan.rows ? each * plan.warps : 16 * each) * resident /
                          plan.warps / 10.4e3;
  const double in_turn = waves * block_us + (waves - 1) * 2.7;
  const double read = std::max(bytes / (bytes > 20e6 ? 4.3e6 : 3.1e6), in_turn);
  double slower = (plan.wide            ? (plan.rows && moves_by16(left.a) ? 1.05 : 1.2)
                   : plan.columns == 16 ? sixteen_factor(left, plan)
                                        : 1.0) *
                  (aligned16(left.a) ? 1.0 : 1.12) * (plan.panels > 1 ? 1.17 : 1);
  if (plan.rows && !right_by16(left, plan)) slower *= plan.panels > 1 ? 1.6 : 1.22;
  return 1.27 + 0.2 * plan.columns + (plan.rows && plan.splits > 1 ? 0.45 : 0) + read * slower;
}

}  // namespace fl
