// bf16x6 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the split
// pass and the range check of sgemm_bf16x6.cu, and a product of mma.sync instructions. Half as fast as fp16x2_mma, and
// its fallback.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/mma_launch.cuh"

namespace fl {
namespace {

using Square = MmaTile<Bf16Terms, 32, 4, 4, 2, 4, 1, 2, 1>;
using Small = MmaTile<Bf16Terms, 32, 4, 4, 1, 2, 2, 2, 1>;

static_assert(is_planned_as<Square>(bf16x6_mma_tiles[0]) && is_planned_as<Small>(bf16x6_mma_tiles[1]),
              "a tile has another size or other parts of k than the plan reckons with");

}  // namespace

void launch_bf16x6_mma(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx) {
  Context own = ctx;
  if (previous) own.prepacked = nullptr;  // they are of two fp16 terms
  const ProductOperands at(p, AccuratePlan(p, Terms::bf16x6), Terms::bf16x6, own);
  const RangeBound bound(Terms::bf16x6, p.k);
  launch_split<Bf16Terms>(p, at, bound, previous, ctx);
  const int tile = choose_mma_tile(MmaProduct::bf16x6, p.m, p.n, p.k, *ctx.device).tile;
  if (!launch_mma<Square, Small>(tile, {p, at, bound, previous, status, true, ctx}))
    launch_float32_fallback(p, status, ctx);
}

void sgemm_bf16x6_mma(const SgemmArgs& p, const Context& ctx) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
  auto* const status = static_cast<unsigned*>(ctx.workspace);
  for_each_problem(
      p, ctx, [&](const SgemmArgs& one, const Context& context) { launch_bf16x6_mma(one, nullptr, status, context); });
}

}  // namespace fl
