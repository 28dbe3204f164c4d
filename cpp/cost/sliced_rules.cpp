#include <algorithm>
#include <cmath>

#include "cost/rules.h"
#include "plan/sliced_plan.h"
#include "plan/splits.h"
#include "table/registry.h"

namespace fl {

const char* accurate_only(const SgemmArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return p.precision == Precision::accurate ? nullptr : "precision='accurate'";
}

std::size_t bf16x6_workspace(const SgemmArgs& p) {
  if (!sliced_fits(p.k)) return 0;
  return SlicedPlan(p, Slices::bf16x6, SLICE_BLOCK, sliced_ranges(p.m, p.n, p.k)).bytes;
}
std::size_t fp16x2_workspace(const SgemmArgs& p) {
  if (!sliced_fits(p.k)) return 0;
  const SlicedRanges ranges = sliced_ranges(p.m, p.n, p.k);
  // Which tile a device takes depends on its number of multiprocessors.
  const std::size_t own = SlicedPlan(p, Slices::fp16x2, p.n <= SLICED_WIDEST_96 ? 96 : SLICE_BLOCK, ranges).bytes;
  const std::size_t behind = bf16x6_stands_by(p) ? bf16x6_workspace(p) : 0;
  return own > behind ? own : behind;
}

std::size_t fp16x2_mma_workspace(const SgemmArgs& p) {
  return sliced_fits(p.k) ? SlicedPlan(p, Slices::fp16x2).bytes : 0;
}

std::optional<Slices> slices_of(const Kernel<SgemmArgs>& row) {
  if (row.workspace == fp16x2_workspace || row.workspace == fp16x2_mma_workspace) return Slices::fp16x2;
  return row.workspace == bf16x6_workspace ? std::optional(Slices::bf16x6) : std::nullopt;
}

namespace {
// As launch() of those rows has it: else they go to the strict kernel at once.
bool splits(const Kernel<SgemmArgs>& row, const SgemmArgs& p) {
  return slices_of(row) && sliced_fits(p.k) && std::isfinite(p.alpha);
}
}  // namespace

KeptSplit split_to_keep(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side) {
  if (!splits(row, p)) return {};
  const int64_t lines = side == Side::a ? p.m : p.n, batch_stride = side == Side::a ? p.a.bs : p.b.bs;
  const bool wide = side == Side::b && row.workspace == fp16x2_workspace && lines <= SLICED_WIDEST_96;
  const std::size_t bytes = SplitLayout(lines, p.k, *slices_of(row), wide ? 96 : SLICE_BLOCK).bytes;
  const bool apart = p.batch > 1 && batch_stride != 0;
  return {.bytes = apart ? bytes * std::size_t(p.batch) : bytes, .apart = apart ? bytes : 0, .lines = lines};
}

KeptSplit split_to_share(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side) {
  if (p.batch > 1 || !splits(row, p)) return {};
  const int64_t lines = side == Side::a ? p.m : p.n;
  return {.bytes = SplitLayout(lines, p.k, *slices_of(row)).bytes, .shared = true, .lines = lines};
}

std::string sliced_answer(Slices slices, bool three_stand_by, const SgemmArgs& p, const unsigned* verdicts) {
  const std::string last = p.batch > 1 ? " (the last of the batch)" : "";
  const bool two = slices == Slices::fp16x2;
  if (!(verdicts[0] & VERDICT_REFUSED)) return (two ? "two fp16 slices" : "three bf16 slices") + last;
  const bool three = three_stand_by && !(verdicts[1] & VERDICT_REFUSED);
  const std::string why = verdicts[0] & VERDICT_NOT_FINITE ? "NaN or infinite numbers" : "the range of the operands";
  return (three ? "three bf16 slices" : "plain float32") + (" because of " + why) + last;
}

namespace {
// Lines that leave multiprocessors idle take as long as the pieces of one line, one after the other; those that are
// split in strips as long as the pieces of a strip, one more for the scale, and a second launch.
double split_us(const SgemmArgs& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  if (p.k <= SlicedBound::ONE_PIECE) return std::max(3e-6 * (m + n) * k, 3.0);
  const int64_t pieces = ceil_div(p.k, SPLIT_PIECE);
  const int strips = split_strips(ceil_div(p.m, SPLIT_LINES) + ceil_div(p.n, SPLIT_LINES), p.k);
  const double one_line = strips > 1 ? 2.05 * double(ceil_div(pieces, strips) + 1) + 2.5 : 2.05 * double(pieces);
  return std::max((strips > 1 ? 3e-6 : 3.3e-6) * (m + n) * k, one_line);
}
}  // namespace

// Fitted to 132 shapes near the border to the strict rows and to squares, k = 1024: 16.7 us at 512, 18.7 at 1024, 169
// at 4096, 655 at 8192, and there 812 with beta, 835 with a C that the copy engine cannot store, 1030 with both. What
// lasts longer than about 100 us runs at the power limit.
double fp16x2_cost(const SgemmArgs& p) {
  constexpr int64_t multiprocessors = 132;
  const double m = double(p.m), n = double(p.n), k = double(p.k), batch = double(p.batch);
  if (!sliced_fits(p.k)) return 100 + 2 * m * n * k * batch / 20e6;
  const double split = split_us(p), launches = bf16x6_stands_by(p) ? 8 : 3;
  if (const SlicedRanges ranges = sliced_ranges(p.m, p.n, p.k); ranges.count > 1)
    return (split + launches + 3 + ranges.ends + ranges.rounds_area * 2 * k / SLICED_RATE) * batch;
  const SlicedChoice choice = sliced_choice(p.m, p.n, p.k, multiprocessors);
  const double area = choice.rounds_area * multiprocessors;
  const double way_out = (p.beta != 0.0f ? 2.4e-6 : 0) + (sliced_stored_by_boxes(p) ? 0 : 2.9e-6);
  const double product = choice.rounds_area * 2 * k / SLICED_RATE;
  return (split + launches + choice.ends + product - 0.25 * std::min(product, 100.0) + area * way_out) * batch;
}

// Six products for three, and tiles half as large.
double bf16x6_cost(const SgemmArgs& p) { return 1.8 * fp16x2_cost(p) + 3; }

// Measured on an H200, k = 1024: 27 us at 512, 28 at 1024, 300 at 4096, 1148 at 8192, and 1062 for 4096 cubed. Where
// the row is chosen it competes with the ladder alone.
double fp16x2_mma_cost(const SgemmArgs& p) {
  constexpr int64_t multiprocessors = 132;
  const double m = double(p.m), n = double(p.n), k = double(p.k), batch = double(p.batch);
  if (!sliced_fits(p.k)) return 100 + 2 * m * n * k * batch / 20e6;
  const double area = mma_choice(p.m, p.n, multiprocessors).rounds_area * multiprocessors;
  return (3.5 + 8 * (m + n) * k / 3.6e6 + area * (2 * k / 150e6 + 2.4e-6)) * batch;
}

}  // namespace fl
