// Float32 accuracy on the tensor cores over the whole range of exponents: three bf16 terms, six products. Half as fast
// as fp16x2, whose fallback it is.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/split_k.cuh"

namespace fl {

template void launch_split<Bf16Terms>(const SgemmArgs&, const ProductOperands&, const RangeBound&, const unsigned*,
                                      const Context&);

namespace {

using Square = PersistentTile<Bf16Terms, 1, 128, 2, 2, 1, true>;
using Small = PersistentTile<Bf16Terms, 1, 64, 2, 2, 1>;
using Single = SingleTile<Bf16Terms, 1, 2, 128, 2, 1>;

// Smaller tiles may leave fewer multiprocessors idle in the last round (65 us for 77 at 1536, 201 for 205 at 3072), but
// are slower (94 for 91 at 2048).
bool small_is_faster(const SgemmArgs& p, int sm_count) {
  const auto columns = [&](int64_t BN) {
    return BN * ceil_div(ceil_div(p.m, Square::BM) * ceil_div(p.n, BN), sm_count);
  };
  return 10 * columns(Small::BN) <= 9 * columns(Square::BN);
}

}  // namespace

void launch_bf16x6(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx) {
  Context own = ctx;
  if (previous) own.prepacked = nullptr;  // they are of two fp16 terms
  // Two parts of k decide bits, so where there are such does not depend on the device.
  const bool single = ceil_div(p.m, Single::BM) * ceil_div(p.n, Single::BN) <= PLAN_MULTIPROCESSORS;
  const RangeBound bound(Terms::bf16x6, p.k);
  if (!single && launches_triangle(p, own)) {
    const ProductOperands at = launch_shared_split<Bf16Terms>(p, bound, previous, own);
    static_assert(TriangleTile<Square>::FALLS_BACK);
    launch_product<TriangleTile<Square>>(p, at, bound, previous, status, true, ctx);
    return;
  }
  const AccurateSplitK split_k = accurate_split_k(p.m, p.n, p.k);
  const ProductOperands at(p, AccuratePlan(p, Terms::bf16x6, TERM_BLOCK, split_k), Terms::bf16x6, own);
  launch_split<Bf16Terms>(p, at, bound, previous, ctx);
  if (split_k.count > 1) return launch_split_k<Bf16Terms>(p, at, split_k, bound, previous, status, true, ctx);
  bool falls_back = false;
  if (single) falls_back = launch_single<Single>(p, at, bound, previous, status, !previous, ctx);
  else if (small_is_faster(p, ctx.sm_count))
    falls_back = launch_product<Small>(p, at, bound, previous, status, true, ctx);
  else falls_back = launch_product<Square>(p, at, bound, previous, status, true, ctx);
  if (!falls_back) launch_float32_fallback(p, status, ctx);
}

void launch_float32_fallback(const SgemmArgs& p, const unsigned* status, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, FALLBACK_BM, FALLBACK_BM);
  const bool by16 = aligned16(p.a) && aligned16(p.b);
  const auto launch = [&]<class Sums>(std::type_identity<Sums>) {
    const unsigned full = Sums::RESIDENT * static_cast<unsigned>(ctx.sm_count),
                   blocks = grid.blocks() < full ? grid.blocks() : full;
    by_order(p, [&](auto TA, auto TB) {
      const LaunchShape shape{blocks, FALLBACK_THREADS, int(sizeof(FallbackTiles)) + Sums::BYTES};
      launch_kernel<float32_fallback_kernel<TA, TB, Sums>>(shape, ctx, p, grid, status, by16);
    });
  };
  if (ctx.device->shared_per_block >= FALLBACK_SHARED) launch(std::type_identity<SharedSums>{});
  else launch(std::type_identity<RegisterSums>{});
}

void launch_split_k_fallback(const SgemmArgs& p, const unsigned* status, const SplitKSums& to, const Context& ctx) {
  const TileGrid grid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM);
  const bool by16 = aligned<4>(p.a.data, ld(p.a)) && aligned<4>(p.b.data, ld(p.b));
  const unsigned full = 2 * static_cast<unsigned>(ctx.sm_count), units = grid.blocks() * unsigned(to.parts);
  by_order(p, [&](auto TA, auto TB) {
    launch_kernel<split_k_fallback_kernel<TA, TB>>({units < full ? units : full, FALLBACK_THREADS, FALLBACK_SHARED},
                                                   ctx, p, grid, status, by16, to);
  });
}

void sgemm_bf16x6(const SgemmArgs& p, const Context& ctx) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
  auto* const status = static_cast<unsigned*>(ctx.workspace);
  for_each_problem(p, ctx,
                   [&](const SgemmArgs& one, const Context& context) { launch_bf16x6(one, nullptr, status, context); });
}

}  // namespace fl
