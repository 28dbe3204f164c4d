#include "cost/simt_rules.h"

#include "cost/rules.h"

namespace fl {
namespace {
constexpr int64_t multiprocessors = 132, BK = 32;

// A step along k of a tile, at 0.4 TFLOP/s a multiprocessor.
double step_us(int64_t BM, int64_t BN) { return 2.0 * double(BM * BN * BK) / 0.4e6; }

double way_factor(const ConstMatrix& x, bool straight, double for_an_fma, bool warps) {
  if (warps) return !straight ? 0.07 : aligned16(x) ? 0.0 : 4 * for_an_fma;
  if (aligned16(x)) return straight ? 0.0 : 0.06;
  return straight ? std::min(8 * for_an_fma, 0.2) : std::min(7 * for_an_fma, 0.16);
}
}  // namespace

double copy_factor(const SgemmArgs& p, double BM, double BN, bool A_BY_K) {
  const double for_an_fma = (BM + BN) / (BM * BN);
  return 1.0 + way_factor(p.a, (p.a.cs == 1) == A_BY_K, for_an_fma, A_BY_K) +
         way_factor(p.b, p.b.cs == 1, for_an_fma, A_BY_K);
}
bool whole_tiles(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t STEP) {
  const bool straight = p.a.cs == 1 && p.b.cs == 1 && aligned16(p.a) && aligned16(p.b) && aligned16(p.c);
  return straight && p.batch == 1 && p.m % BM == 0 && p.n % BN == 0 && p.k % STEP == 0;
}
double store_ns(const SgemmArgs& p) { return aligned16(p.c) ? 0.0 : 0.1; }

double cut_us(const SgemmArgs& p, int splits) {
  return 2.6 + double(splits) * double(p.m) * double(p.n) * double(p.batch) * 4 / 3e6;
}

// The cut is part of the specification of the result's bits, so it depends on the call alone: not on what else is known
// about the kernel, only on the rate in step_us.
CutPlan cut_plan(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t groups) {
  CutPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = ceil_div(p.m, BM) * ceil_div(p.n, BN) * p.batch, steps = ceil_div(p.k, BK);
  if (tiles > 2 * multiprocessors || steps < 12) return plan;
  const int64_t fewest = fewest_splits(p, groups, false, steps / 3);
  double least = 0;
  for (int64_t waves = 0; waves <= 3; ++waves) {
    const int64_t most = std::clamp<int64_t>(waves * multiprocessors / tiles, fewest, steps / 3);
    const int64_t splits = ceil_div(steps, ceil_div(steps, most));
    const double us =
        double(ceil_div(tiles * splits, multiprocessors)) * (4 + double(ceil_div(steps, splits)) * step_us(BM, BN)) +
        (splits > 1 ? cut_us(p, int(splits)) : 0.0);
    if (waves == 0 || us < least) least = us, plan.splits = int(splits);
  }
  return plan;
}

double tiny_factor(const SgemmArgs& p) {
  return 1.0 - 0.22 * (p.a.cs == 1 && aligned16(p.a)) - 0.22 * (p.b.cs == 1 && aligned16(p.b));
}

bool sharing_pays(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t blocks) {
  const int64_t tiles = ceil_div(p.m, BM) * ceil_div(p.n, BN) * p.batch, rest = tiles % blocks,
                steps = ceil_div(p.k, BK);
  if (blocks > multiprocessors || tiles < blocks || rest == 0 || steps > 1 << 20) return false;
  // More than a step has to be saved by each block, so that its share is less than two tiles; and more than 1 %, since
  // the blocks then read A and B at different times.
  const double saved = (1 - double(rest) / double(blocks)) * double(steps);
  const double all = double(ceil_div(tiles, blocks) * steps);
  return saved > 1 && (saved - 0.01 * all) * step_us(BM, BN) > SHARING_US;
}

std::size_t sharing_bytes(const SgemmArgs& p, int64_t BM, int64_t BN) {
  if (!sharing_pays(p, BM, BN, multiprocessors)) return 0;
  return std::size_t(multiprocessors) * (std::size_t(BM * BN) * sizeof(float) + 8 * sizeof(unsigned));
}

double sliced_factor(const SgemmArgs& p) {
  const auto way = [](const ConstMatrix& x, bool straight) { return !straight ? 0.11 : aligned16(x) ? 0.0 : 0.1; };
  return 1.0 + way(p.a, p.a.cs != 1) + way(p.b, p.b.cs == 1);
}

// As cut_plan: of the call alone. A step takes a block its latency and its share of the multiprocessor's time.
CutPlan sliced_cut(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t groups) {
  CutPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = ceil_div(p.m, BM) * ceil_div(p.n, BN) * p.batch, steps = ceil_div(p.k, BK);
  if (tiles > 2 * multiprocessors || steps < 8) return plan;
  const double alone_us = 0.27, shared_us = 0.1 + 0.168e-3 * double(BM * BN);
  const int64_t fewest = fewest_splits(p, groups, true, steps / 4);
  double least = 0;
  for (int64_t waves = 0; waves <= 6; ++waves) {
    const int64_t most = std::clamp<int64_t>(waves * multiprocessors / tiles, fewest, steps / 4);
    const int64_t splits = ceil_div(steps, ceil_div(steps, most));
    const double each = double(ceil_div(steps, splits));
    const double us = each * alone_us + double(ceil_div(tiles * splits, multiprocessors)) * (0.6 + each * shared_us) +
                      (splits > 1 ? cut_us(p, int(splits)) : 0.0);
    if (waves == 0 || us < least) least = us, plan.splits = int(splits);
  }
  return plan;
}

bool shallow_is_large(const SgemmArgs& p) {
  return ceil_div(p.m, 64) * ceil_div(p.n, 128) * p.batch >= multiprocessors;
}

bool shallow_is_small(const SgemmArgs& p) {
  return !shallow_is_large(p) && ceil_div(p.m, 32) * ceil_div(p.n, 64) * p.batch <= 4 * multiprocessors;
}

// Fitted to 145 random shapes: a block's way along k, 37 TFLOP/s in whole tiles, and C at 3.6 TB/s, or 4.9 where its
// rows are aligned.
double shallow_cost(const SgemmArgs& p) {
  const int64_t BM = shallow_is_large(p) ? 64 : 32, BN = 2 * BM;
  const bool small = shallow_is_small(p);
  const double tiles = double(ceil_div(p.m, BM)) * double(ceil_div(p.n, BN)) * double(p.batch);
  const double write = double(p.m) * double(p.n) * double(p.batch) * (aligned16(p.c) ? 0.82e-6 : 1.1e-6);
  const double k = double(p.k) * (1.0 + 0.044 * (p.a.cs == 1) + 0.044 * (p.b.cs != 1));
  return (small ? 2.04 + 0.0316 * k : 2.75 + 0.041 * k) + tiles * double(BM * BN) * k * (small ? 0.035e-6 : 0.054e-6) +
         write;
}

// Fitted to 212 random shapes. Lanes that read rows of B side by side in k hinder each other where these lie whole
// lines apart: 5 x 73 x 32 takes 3.3 us.
double element_cost(const SgemmArgs& p) {
  const double outputs = double(p.m) * double(p.n) * double(p.batch), k = double(p.k);
  const bool whole_lines = p.b.cs != 1 && p.n > 1 && p.b.cs % 32 == 0;
  return 1.0 + (whole_lines ? 0.08 : 0.0264) * k + outputs * (7.5e-6 + 0.7e-6 * k);
}

}  // namespace fl
