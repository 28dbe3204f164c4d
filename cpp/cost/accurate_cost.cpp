#include "cost/accurate_cost.h"

#include <algorithm>

#include "core/stored.h"
#include "cost/rules.h"
#include "plan/accurate/epilogue.h"
#include "plan/accurate/mma_plan.h"
#include "plan/accurate/range_bound.h"
#include "plan/accurate/wgmma_plan.h"

namespace fl {

constexpr const char* accurate_text = "the precision 'accurate'";
// Of multiplications. Below, strict kernels may be faster, copies included.
constexpr double SMALLEST_IN_16_BITS = 0x1p27;
static bool faster_in_16_bits(const SgemmArgs& p) {
  return double(p.m) * double(p.n) * double(p.k) >= SMALLEST_IN_16_BITS && terms_fit(p.k);
}

const char* accurate_only(const SgemmArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return p.precision == Precision::accurate ? nullptr : accurate_text;
}
const char* accurate_in_16_bits(const SgemmArgs& p) {
  SgemmArgs in_float32 = p;
  in_float32.stored = {};
  if (const char* lacks = accurate_only(in_float32); lacks || !any_in_16_bits(p.stored)) return lacks;
  const auto follow = [](const ConstMatrix& x, int64_t rows, int64_t cols) {
    return (x.cs == 1 && x.rs >= cols) || (x.rs == 1 && x.cs >= rows);
  };
  return faster_in_16_bits(p) && follow(p.a, p.m, p.k) && follow(p.b, p.k, p.n) && p.c.rs >= p.n
             ? nullptr
             : "float32 operands, or in 16 bits those of a large product whose lines follow one another";
}
const char* accurate_on_the_cpu(const SgemmArgs& p) {
  if (const char* lacks = float32_operands(p)) return lacks;
  return p.precision == Precision::accurate ? nullptr : accurate_text;
}

namespace {

double outputs_of_each(const SgemmArgs& p) { return double(p.m) * double(p.n); }  // problem of a batch

// Lines that leave multiprocessors idle take as long as the pieces of one line, one after the other; those that are
// split in segments as long as the pieces of a segment, one more for the scale, and a second launch. `lines` of k.
template <class Cost>
double split_us(const SgemmArgs& p, int64_t groups, double lines, const Cost& cost) {
  constexpr int64_t SHORTEST = 512;  // shorter lines take as long
  const double numbers = lines * double(std::max(p.k, SHORTEST));
  if (p.k <= RangeBound::ONE_PIECE) return std::max(1e-9 * cost.split_fs * numbers, cost.small_split_us);
  const int64_t pieces = ceil_div(p.k, SPLIT_PIECE);
  const int segments = split_segments(groups, p.k);
  const double one_line = segments > 1 ? cost.piece_us * double(ceil_div(pieces, segments) + 1) + cost.segments_us
                                       : cost.piece_us * double(pieces);
  return std::max(1e-9 * (segments > 1 ? cost.split_fs : cost.split_in_pieces_fs) * numbers, one_line);
}

// Of both operands, or of those that are not prepacked.
template <class Cost>
double split_us(const SgemmArgs& p, const Cost& cost, ReadySides ready = {}) {
  if (ready.a && ready.b) return 0;
  const int64_t rows = ready.a ? 0 : p.m, cols = ready.b ? 0 : p.n;
  return split_us(p, ceil_div(rows, SPLIT_LINES) + ceil_div(cols, SPLIT_LINES), double(rows) + double(cols), cost);
}

// As fp16x2; bf16x6 has six products for three and tiles half as large.
double fp16x2_us(const SgemmArgs& p, const DeviceSpec& device, const WgmmaCost& cost) {
  const double k = double(p.k), batch = double(p.batch);
  const bool triangle = computes_triangle(p);
  const double split = triangle ? split_us(p, ceil_div(p.m, SPLIT_LINES), double(p.m), cost) : split_us(p, cost);
  const double launches = has_bf16x6_fallback(p) ? cost.launches_with_fallback_us : cost.launches_us;
  const auto product_us = [&](double rounds_area) { return 1e-6 * cost.product_tensor_ps * rounds_area * k; };
  if (const AccurateSplitK split_k = wgmma_split_k(p.m, p.n, p.k); split_k.count > 1)
    return (split + launches + cost.split_k_us + split_k.ends + product_us(split_k.rounds_area)) * batch;
  const TileChoice choice = triangle ? choose_triangle_tile(p.n, p.k, device.multiprocessors)
                                     : choose_wgmma_tile(p.m, p.n, p.k, device.multiprocessors);
  const double area = choice.rounds_area * double(device.multiprocessors);
  const bool adds = p.beta != 0.0f, by_tma = allows_tma_store(p) && (!adds || allows_vectors(addend_of(p)));
  const double store_us = 1e-9 * cost.output_fs * outputs_of_each(p) +
                          1e-9 * area * ((adds ? cost.beta_fs : 0) + (by_tma || triangle ? 0 : cost.direct_store_fs));
  const double product = product_us(choice.rounds_area);
  return (split + launches + choice.ends + product - cost.hidden * std::min(product, cost.most_hidden_us) + store_us) *
         batch;
}

// By the float32 fallback. An output takes as long as that many FMAs: 7329 x 5455 x 2 took bf16x6 232 us on an H200.
template <class Cost>
double no_terms_us(const SgemmArgs& p, const DeviceSpec& device, const Cost& cost) {
  constexpr double fmas_per_output = 64;
  const double fmas = outputs_of_each(p) * double(p.batch) * (double(p.k) + fmas_per_output);
  return cost.no_terms_us + 1e-6 * cost.no_terms_ps * fmas / device.multiprocessors;
}

}  // namespace

double wgmma_us(const SgemmArgs& p, const DeviceSpec& device, const WgmmaCost& cost) {
  const double us = terms_fit(p.k) ? fp16x2_us(p, device, cost) : no_terms_us(p, device, cost);
  return cost.times * us + cost.more_us;
}

double saved_by_prepacked_us(const SgemmArgs& p, ReadySides ready, const WgmmaCost& cost) {
  return terms_fit(p.k) ? cost.times * (split_us(p, cost) - split_us(p, cost, ready)) : 0;
}
double saved_by_prepacked_us(const SgemmArgs& p, ReadySides ready, const MmaCost& cost) {
  return terms_fit(p.k) ? split_us(p, cost) - split_us(p, cost, ready) : 0;
}

template <MmaProduct PRODUCT>
double mma_us(const SgemmArgs& p, const DeviceSpec& device, const MmaCost& cost) {
  if (!terms_fit(p.k)) return no_terms_us(p, device, cost);
  const double split = split_us(p, cost), batch = double(p.batch);
  const double launches =
      PRODUCT == MmaProduct::fp16x2 && has_bf16x6_fallback(p) ? cost.launches_with_fallback_us : cost.launches_us;
  const auto product_us = [&](double rounds_area) { return 1e-6 * cost.product_tensor_ps * rounds_area * double(p.k); };
  if (const AccurateSplitK split_k = mma_split_k(PRODUCT, p.m, p.n, p.k); split_k.count > 1)
    return (split + launches + cost.split_k_us + split_k.ends + product_us(split_k.rounds_area)) * batch;
  const TileChoice choice = choose_mma_tile(PRODUCT, p.m, p.n, p.k, device);
  const double output_fs = cost.output_fs + (aligned16(p.c) ? 0.0 : cost.unaligned_output_fs);
  const double store_us = 1e-9 * output_fs * outputs_of_each(p);
  return (split + launches + choice.ends + product_us(choice.rounds_area) + store_us) * batch;
}
template double mma_us<MmaProduct::fp16x2>(const SgemmArgs&, const DeviceSpec&, const MmaCost&);
template double mma_us<MmaProduct::fp16x2_k8>(const SgemmArgs&, const DeviceSpec&, const MmaCost&);
template double mma_us<MmaProduct::bf16x6>(const SgemmArgs&, const DeviceSpec&, const MmaCost&);

}  // namespace fl
