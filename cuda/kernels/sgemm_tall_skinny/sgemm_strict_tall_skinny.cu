// Strict SGEMM with at most 16 columns, or rows: a matrix is read once, at the speed of memory, and everything else
// stays on the chip. By what the long operand's contiguous direction is: tall_skinny_columns.cuh, and
// tall_skinny_rows.cuh or, for large products with 16 columns, tall_skinny_quads.cuh. More columns are taken in panels
// of 16, which read the long operand again.
#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_columns.cuh"
#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_quads.cuh"
#include "cuda/kernels/sgemm_tall_skinny/tall_skinny_rows.cuh"

namespace fl {

template <int NR>
void tall_skinny(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  plan.rows ? tall_skinny_rows<NR, false>(p, plan, ctx) : tall_skinny_columns<NR, false>(p, plan, ctx);
}

// Where rows are not aligned, and come by 4-byte copies, fours of k are slower than pairs (448 instead of 404 us at
// 16383 x 16381 times 16 columns). And fours need twice the room for B: with less than four warps beside it there are
// too few to wait for memory.
void tall_skinny_wide(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  if (!plan.rows) return tall_skinny_columns<16, true>(p, plan, ctx);
  const bool fours = aligned16(p.a) && int(ctx.device->shared_per_block) >= quads_shared_bytes(4);
  fours ? tall_skinny_quads(p, plan, ctx) : tall_skinny_rows<16, true>(p, plan, ctx);
}

void sgemm_strict_tall_skinny(const SgemmArgs& p, const Context& ctx) {
  const SgemmArgs left = long_operand_left(p);
  const TallSkinnyPlan plan = tall_skinny_plan(left);
  switch (plan.columns) {
    case 2: return tall_skinny<2>(left, plan, ctx);
    case 4: return tall_skinny<4>(left, plan, ctx);
    case 8: return tall_skinny<8>(left, plan, ctx);
    default: return plan.wide ? tall_skinny_wide(left, plan, ctx) : tall_skinny<16>(left, plan, ctx);
  }
}

}  // namespace fl
