#include "plan/tall_skinny_plan.h"

#include <algorithm>

#include "core/layout.h"
#include "plan/reference_device.h"
#include "plan/transposed.h"

namespace fl {
namespace {

constexpr int64_t range = 128;  // of k: what a block does is a multiple of it

int panel_columns(int64_t n) { return n <= 2 ? 2 : (n <= 4 ? 4 : (n <= 8 ? 8 : 16)); }

// Blocks of all resident warps read the right operand least often; smaller ones spread better, and hide each other's
// ends.
int rows_warps(const SgemmArgs& p, int resident) {
  return p.m > 64 && p.k >= 1024 && reads_from_memory(p) ? resident : 4;
}

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

}  // namespace

bool reads_from_memory(const SgemmArgs& p) {
  return 4.0 * double(std::max(p.m, p.n)) * double(p.k) * double(p.batch) >= 60e6;
}

SgemmArgs long_operand_left(const SgemmArgs& p) { return p.m < p.n ? transposed(p) : p; }

bool right_aligned16(const SgemmArgs& left, const TallSkinnyPlan& plan) {
  return aligned16(left.b) && (left.b.cs != 1 || (left.n % 4 == 0 && plan.columns >= 4));
}

TallSkinnyPlan tall_skinny_plan(const SgemmArgs& p) {
  TallSkinnyPlan plan;
  plan.rows = p.a.cs == 1;
  plan.columns = panel_columns(p.n);
  plan.panels = ceil_div(p.n, plan.columns);
  plan.wide = plan.columns == 16 && p.m >= 1024 && p.k >= 1024 && reads_from_memory(p);
  const int resident = plan.resident_warps(), each = plan.rows_of_warp();
  // Where the warps of a block share k, each has sums of its own to add at the end: worth 64 k and more, or 16 where
  // there is too little work for all multiprocessors and what counts is the time from the first load to the last sum.
  const bool fills = double(p.m) * double(p.k) * double(p.batch) >= 8e6;
  for (plan.warps = plan.rows ? rows_warps(p, resident) : resident;; plan.warps /= 2) {
    plan.row_blocks = ceil_div(p.m, plan.rows ? each * plan.warps : 16 * each);
    const int64_t blocks = plan.row_blocks * plan.panels * p.batch,
                  slots = PLAN_MULTIPROCESSORS * (resident / plan.warps);
    const int64_t splits = std::max(ceil_div(p.k, int64_t{1} << 30), count_splits(blocks, slots, p.k));
    plan.split_k = std::max<int64_t>(ceil_div(ceil_div(p.k, splits), range) * range, range);
    plan.splits = static_cast<int>(std::max<int64_t>(ceil_div(p.k, plan.split_k), 1));
    if (plan.rows || plan.warps == 2 || plan.split_k >= (fills ? 64 : 16) * plan.warps) return plan;
  }
}

std::size_t sums_workspace(const SgemmArgs& p, int splits) {
  return splits == 1 ? 0 : std::size_t(splits) * std::size_t(p.m) * std::size_t(p.n) * std::size_t(p.batch) * 4;
}

std::size_t tall_skinny_workspace(const SgemmArgs& p) {
  return sums_workspace(p, tall_skinny_plan(long_operand_left(p)).splits);
}

}  // namespace fl
