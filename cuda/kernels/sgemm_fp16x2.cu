// Float32 accuracy at the speed of the tensor cores: each operand as the sum of two fp16 slices, three products.
//
// The split pass, the product, and what stands by for numbers that two slices cannot hold (docs/accuracy.md): three bf16
// slices, and behind those a strict kernel. Which of them has something to do is decided on the device. Calls with a
// small k, and those with an alpha that is NaN or infinite, run the strict kernel alone.
// A batch is a loop: the problems that come here are large enough, and the workspace stays that of one problem.
#include <cmath>

#include "sliced_launch.cuh"

namespace fl {
namespace {

using Tall = ProductTile<Fp16Slices, 2, 128, 2, 2, 2>;
using Middle = ProductTile<Fp16Slices, 1, 128, 3, 2, 1>;
using Small = ProductTile<Fp16Slices, 1, 64, 2, 4, 1>;

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const SlicedPlan plan(p, Slices::fp16x2);
  const SlicedBound bound(Slices::fp16x2, p.k);
  auto* const verdicts = reinterpret_cast<unsigned*>(static_cast<char*>(ctx.workspace) + plan.verdicts);
  launch_split<Fp16Slices>(p, plan, bound, nullptr, ctx);
  switch (sliced_choice(p.m, p.n, ctx.sm_count).tile) {
    case SlicedTile::tall_256x128: launch_product<Tall>(p, plan, bound, nullptr, verdicts, ctx); break;
    case SlicedTile::middle_192x128: launch_product<Middle>(p, plan, bound, nullptr, verdicts, ctx); break;
    case SlicedTile::small_128x64: launch_product<Small>(p, plan, bound, nullptr, verdicts, ctx); break;
  }
  const bool more = bf16x6_stands_by(p);
  if (more) launch_bf16x6(p, verdicts, verdicts + 1, ctx);
  launch_sliced_fallback(p, verdicts + more, ctx);
}

}  // namespace

void sgemm_fp16x2(const SgemmArgs& p, const Context& ctx) {
  if (!sliced_fits(p.k) || !std::isfinite(p.alpha)) return launch_sliced_fallback(p, nullptr, ctx);
  for (int64_t i = 0; i < p.batch; ++i) multiply_one(problem_of(p, i), ctx);
}

}  // namespace fl
