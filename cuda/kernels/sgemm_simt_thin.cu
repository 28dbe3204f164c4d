// Strict SGEMM with at most 16 columns, or rows: a matrix is read once, at the speed of memory, and everything else
// stays on the chip. Two kernels, by what the long operand's contiguous direction is (thin_rows.cuh, thin_columns.cuh).
// More columns are taken in panels of 16, which read the long operand again.
#include "thin_columns.cuh"
#include "thin_rows.cuh"

namespace fl {

template <int NR, bool WIDE = false>
void thin(const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  plan.rows ? thin_rows<NR, WIDE>(p, plan, ctx) : thin_columns<NR, WIDE>(p, plan, ctx);
}

void sgemm_simt_thin(const SgemmArgs& p, const Context& ctx) {
  const SgemmArgs left = long_operand_left(p);
  const ThinPlan plan = thin_plan(left);
  switch (plan.columns) {
    case 2: return thin<2>(left, plan, ctx);
    case 4: return thin<4>(left, plan, ctx);
    case 8: return thin<8>(left, plan, ctx);
    default: return plan.wide ? thin<16, true>(left, plan, ctx) : thin<16>(left, plan, ctx);
  }
}

}  // namespace fl
