#include "table/prepacked.h"

#include <cmath>

#include "plan/accurate/split_layout.h"
#include "plan/accurate/wgmma_plan.h"
#include "plan/cpu_blocking.h"

namespace fl {

namespace {
// As the kernels themselves have it: else they leave the product to float32 at once.
bool splits(const Kernel<SgemmArgs>& row, const SgemmArgs& p) {
  return row.traits.terms != Terms::none && terms_fit(p.k) && std::isfinite(p.alpha);
}

std::size_t bytes_to_keep(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side, int64_t lines) {
  if (!on_cuda(row.needs))
    return row.traits.strict || p.k < least_term_depth ? 0 : std::size_t(term_floats(lines, p.k)) * sizeof(float);
  if (!splits(row, p)) return 0;
  const bool wide = row.traits.terms == Terms::fp16x2 && row.traits.wgmma && lines <= LARGEST_N_OF_96 &&
                    (side == Side::b || p.stored[1].in_16_bits());  // which takes the place of A
  return SplitLayout(lines, p.k, row.traits.terms, wide ? 96 : TERM_BLOCK).bytes;
}
}  // namespace

PrepackedOperand prepacked_to_keep(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side) {
  const int64_t lines = side == Side::a ? p.m : p.n, batch_stride = side == Side::a ? p.a.bs : p.b.bs;
  const std::size_t bytes = bytes_to_keep(row, p, side, lines);
  const bool apart = p.batch > 1 && batch_stride != 0;
  return {.bytes = apart ? bytes * std::size_t(p.batch) : bytes, .apart = apart ? bytes : 0, .lines = lines};
}

PrepackedOperand prepacked_to_share(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side) {
  if (p.batch > 1 || !splits(row, p)) return {};
  const int64_t lines = side == Side::a ? p.m : p.n;
  return {.bytes = SplitLayout(lines, p.k, row.traits.terms).bytes, .shared = true, .lines = lines};
}

bool reads_shared(const Kernel<SgemmArgs>& row, const SgemmArgs& p) {
  return !(row.traits.terms == Terms::fp16x2 && row.traits.wgmma && second_terms_apart(p));
}

}  // namespace fl
