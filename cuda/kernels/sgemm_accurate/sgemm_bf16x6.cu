// Float32 accuracy on the tensor cores over the whole range of exponents: three bf16 slices, six products. Half as fast
// as fp16x2, for which it stands by.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/sliced_fallback.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_ranges.cuh"

namespace fl {
namespace {

using Square = ProductTile<Bf16Slices, 1, 128, 2, 2, 1>;
using Small = ProductTile<Bf16Slices, 1, 64, 2, 2, 1>;
using Single = SingleTile<Bf16Slices, 1, 2, 128, 2, 1>;

// Smaller tiles may leave fewer multiprocessors idle in the last round (65 us for 77 at 1536, 201 for 205 at 3072), but
// are slower (94 for 91 at 2048).
bool small_is_faster(const SgemmArgs& p, int sm_count) {
  const auto columns = [&](int64_t BN) {
    return BN * ceil_div(ceil_div(p.m, Square::BM) * ceil_div(p.n, BN), sm_count);
  };
  return 10 * columns(Small::BN) <= 9 * columns(Square::BN);
}

}  // namespace

void launch_bf16x6(const SgemmArgs& p, const unsigned* before, unsigned* verdict, const Context& ctx) {
  Context own = ctx;
  if (before) own.splits = nullptr;  // they are those of the two slices
  const SlicedRanges ranges = sliced_ranges(p.m, p.n, p.k);
  const SlicedOperands at(p, SlicedPlan(p, Slices::bf16x6, SLICE_BLOCK, ranges), Slices::bf16x6, own);
  const SlicedBound bound(Slices::bf16x6, p.k);
  launch_split<Bf16Slices>(p, at, bound, before, ctx);
  if (ranges.count > 1) return launch_ranges<Bf16Slices>(p, at, ranges, bound, before, verdict, true, ctx);
  if (ceil_div(p.m, Single::BM) * ceil_div(p.n, Single::BN) <= ctx.sm_count) {
    if (launch_single<Single>(p, at, bound, before, verdict, !before, ctx)) return;
  } else if (small_is_faster(p, ctx.sm_count)) {
    launch_product<Small>(p, at, bound, before, verdict, ctx);
  } else {
    launch_product<Square>(p, at, bound, before, verdict, ctx);
  }
  launch_sliced_fallback(p, verdict, ctx);
}

void launch_sliced_fallback(const SgemmArgs& p, const unsigned* verdict, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, FALLBACK_BM, FALLBACK_BM);
  const bool by16 = aligned16(p.a) && aligned16(p.b);
  const unsigned full = 2 * static_cast<unsigned>(ctx.sm_count), blocks = grid.blocks() < full ? grid.blocks() : full;
  by_order(p, [&](auto TA, auto TB) {
    launch_kernel<sliced_fallback_kernel<TA, TB>>({blocks, FALLBACK_THREADS, FALLBACK_SHARED}, ctx, p, grid, verdict,
                                                  by16);
  });
}

void launch_fallback_ranges(const SgemmArgs& p, const unsigned* verdict, const RangeSums& to, const Context& ctx) {
  const TileGrid grid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM);
  const bool by16 = aligned<4>(p.a.data, ld(p.a)) && aligned<4>(p.b.data, ld(p.b));
  const unsigned full = 2 * static_cast<unsigned>(ctx.sm_count), units = grid.blocks() * unsigned(to.ranges);
  by_order(p, [&](auto TA, auto TB) {
    launch_kernel<fallback_ranges_kernel<TA, TB>>({units < full ? units : full, FALLBACK_THREADS, FALLBACK_SHARED}, ctx,
                                                  p, grid, verdict, by16, to);
  });
}

void sgemm_bf16x6(const SgemmArgs& p, const Context& ctx) {
  if (!sliced_fits(p.k) || !std::isfinite(p.alpha)) return launch_sliced_fallback(p, nullptr, ctx);
  auto* const verdict = static_cast<unsigned*>(ctx.workspace);
  for_each_problem(
      p, ctx, [&](const SgemmArgs& one, const Context& context) { launch_bf16x6(one, nullptr, verdict, context); });
}

}  // namespace fl
