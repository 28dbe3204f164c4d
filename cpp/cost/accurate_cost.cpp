#include "cost/accurate_cost.h"

#include <algorithm>

#include "core/device_spec.h"
#include "cost/rules.h"
#include "plan/accurate_plan.h"

namespace fl {

const char* accurate_only(const SgemmArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return p.precision == Precision::accurate ? nullptr : "precision='accurate'";
}

namespace {
constexpr double operations_per_us = 225e6;  // of the product of two fp16 terms on an H200, large sizes
double product_us(double rounds_area, double k, int64_t multiprocessors) {
  return rounds_area * 2 * k / (operations_per_us / double(multiprocessors));
}

// Lines that leave multiprocessors idle take as long as the pieces of one line, one after the other; those that are
// split in segments as long as the pieces of a segment, one more for the scale, and a second launch.
double split_us(const SgemmArgs& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  if (p.k <= RangeBound::ONE_PIECE) return std::max(3e-6 * (m + n) * k, 3.0);
  const int64_t pieces = ceil_div(p.k, SPLIT_PIECE);
  const int segments = split_segments(ceil_div(p.m, SPLIT_LINES) + ceil_div(p.n, SPLIT_LINES), p.k);
  const double one_line = segments > 1 ? 2.05 * double(ceil_div(pieces, segments) + 1) + 2.5 : 2.05 * double(pieces);
  return std::max((segments > 1 ? 3e-6 : 3.3e-6) * (m + n) * k, one_line);
}
}  // namespace

// Fitted to shapes near the border to the strict kernels and to squares, k = 1024: 16.7 us at 512, 18.7 at 1024, 169 at
// 4096, 655 at 8192, and there 812 with beta, 835 with a C that the tensor memory accelerator cannot store, 1030 with
// both. What lasts longer than about 100 us runs at the power limit.
double fp16x2_cost(const SgemmArgs& p) {
  const int64_t multiprocessors = h200_spec().multiprocessors;
  const double m = double(p.m), n = double(p.n), k = double(p.k), batch = double(p.batch);
  if (!terms_fit(p.k)) return 100 + 2 * m * n * k * batch / 20e6;
  const double split = split_us(p), launches = has_bf16x6_fallback(p) ? 8 : 3;
  if (const AccurateSplitK split_k = accurate_split_k(p.m, p.n, p.k); split_k.count > 1)
    return (split + launches + 3 + split_k.ends + product_us(split_k.rounds_area, k, multiprocessors)) * batch;
  const AccurateTileChoice choice = choose_accurate_tile(p.m, p.n, p.k, multiprocessors);
  const double area = choice.rounds_area * double(multiprocessors);
  const double way_out = (p.beta != 0.0f ? 2.4e-6 : 0) + (allows_tma_store(p) ? 0 : 2.9e-6);
  const double product = product_us(choice.rounds_area, k, multiprocessors);
  return (split + launches + choice.ends + product - 0.25 * std::min(product, 100.0) + area * way_out) * batch;
}

// Six products for three, and tiles half as large.
double bf16x6_cost(const SgemmArgs& p) { return 1.8 * fp16x2_cost(p) + 3; }

// Measured on an H200, k = 1024: 27 us at 512, 28 at 1024, 300 at 4096, 1148 at 8192, and 1062 for 4096 cubed. Where
// the kernel is chosen it competes with the ladder alone.
double fp16x2_mma_cost(const SgemmArgs& p) {
  const int64_t multiprocessors = h200_spec().multiprocessors;
  const double m = double(p.m), n = double(p.n), k = double(p.k), batch = double(p.batch);
  if (!terms_fit(p.k)) return 100 + 2 * m * n * k * batch / 20e6;
  const double area = choose_mma_tile(p.m, p.n, multiprocessors).rounds_area * double(multiprocessors);
  return (3.5 + 8 * (m + n) * k / 3.6e6 + area * (2 * k / 150e6 + 2.4e-6)) * batch;
}

}  // namespace fl
