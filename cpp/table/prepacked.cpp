#include "table/prepacked.h"

#include <cmath>

#include "plan/accurate/split_layout.h"

namespace fl {

namespace {
// As the kernels themselves have it: else they leave the product to float32 at once.
bool splits(const Kernel<SgemmArgs>& row, const SgemmArgs& p) {
  return row.traits.terms != Terms::none && terms_fit(p.k) && std::isfinite(p.alpha);
}
}  // namespace

PrepackedOperand prepacked_to_keep(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side) {
  if (!splits(row, p)) return {};
  const int64_t lines = side == Side::a ? p.m : p.n, batch_stride = side == Side::a ? p.a.bs : p.b.bs;
  const bool wide =
      side == Side::b && row.traits.terms == Terms::fp16x2 && row.traits.wgmma && lines <= LARGEST_N_OF_96;
  const std::size_t bytes = SplitLayout(lines, p.k, row.traits.terms, wide ? 96 : TERM_BLOCK).bytes;
  const bool apart = p.batch > 1 && batch_stride != 0;
  return {.bytes = apart ? bytes * std::size_t(p.batch) : bytes, .apart = apart ? bytes : 0, .lines = lines};
}

PrepackedOperand prepacked_to_share(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side) {
  if (p.batch > 1 || !splits(row, p)) return {};
  const int64_t lines = side == Side::a ? p.m : p.n;
  return {.bytes = SplitLayout(lines, p.k, row.traits.terms).bytes, .shared = true, .lines = lines};
}

}  // namespace fl
