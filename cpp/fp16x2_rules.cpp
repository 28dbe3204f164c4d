#include "fp16x2_plan.h"
#include "rules.h"

namespace fl {

const char* accurate_only(const SgemmArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return p.precision == Precision::accurate ? nullptr : "precision='accurate'";
}

std::size_t fp16x2_workspace(const SgemmArgs& p) { return p.k < FP16X2_SMALLEST_K ? 0 : Fp16x2Plan(p).bytes; }

// Measured on an H200 with both passes, k = 1024: 15.8 us at 512, 19.4 at 1024, 55 at 2048, 182 at 4096, 673 at 8192, and
// there 823 with an odd leading dimension of C, 1510 with beta.
double fp16x2_cost(const SgemmArgs& p) {
  constexpr int64_t multiprocessors = 132;
  const double m = double(p.m), n = double(p.n), k = double(p.k), batch = double(p.batch);
  if (p.k < FP16X2_SMALLEST_K) return 100 + 2 * m * n * k * batch / 20e6;
  const double split = 3 + 8 * (m + n) * k / 3.6e6;
  const double area = fp16x2_choice(p.m, p.n, multiprocessors).rounds_area * multiprocessors;
  const double way_out = p.beta != 0.0f ? 12.6e-6 : fp16x2_stored_by_boxes(p) ? 0 : 2.6e-6;
  return (split + 3 + area * (2 * k / 225e6 + way_out)) * batch;
}

}  // namespace fl
