// Strict SGEMM with at most 16 columns, or rows: a matrix is read once, at the speed of memory, and everything else
// stays on the chip. By what the long operand's contiguous direction is: thin_columns.cuh, and thin_rows.cuh or, for
// large products with 16 columns, thin_quads.cuh.
// More columns are taken in panels of 16, which read the long operand again.
#include "cuda/kernels/sgemm_tall_skinny/thin_columns.cuh"
#include "cuda/kernels/sgemm_tall_skinny/thin_quads.cuh"
#include "cuda/kernels/sgemm_tall_skinny/thin_rows.cuh"

namespace fl {

template <int NR, bool WIDE = false>
void thin(const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  plan.rows ? thin_rows<NR, WIDE>(p, plan, ctx) : thin_columns<NR, WIDE>(p, plan, ctx);
}

// By 4-byte copies fours of k are slower than pairs: 448 us instead of 404 at 16383 x 16381 times 16 columns.
void thin_wide(const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  plan.rows&& moves_by16(p.a) ? thin_quads(p, plan, ctx) : thin<16, true>(p, plan, ctx);
}

void sgemm_strict_tall_skinny(const SgemmArgs& p, const Context& ctx) {
  const SgemmArgs left = long_operand_left(p);
  const ThinPlan plan = thin_plan(left);
  switch (plan.columns) {
    case 2: return thin<2>(left, plan, ctx);
    case 4: return thin<4>(left, plan, ctx);
    case 8: return thin<8>(left, plan, ctx);
    default: return plan.wide ? thin_wide(left, plan, ctx) : thin<16>(left, plan, ctx);
  }
}

}  // namespace fl
