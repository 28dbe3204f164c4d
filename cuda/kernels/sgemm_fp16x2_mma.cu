// fp16x2 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the same split
// pass, guard and verdict (sgemm_fp16x2.cu), and a product of mma.sync instructions. What two slices cannot hold runs in
// float32, as three bf16 slices are Hopper's alone.
#include <cmath>

#include "mma_product.cuh"
#include "sliced_launch.cuh"

namespace fl {
namespace {

using Large = MmaTile<4, 2>;
using Flat = MmaTile<2, 2>;

template <class T>
void launch_mma_product(const SgemmArgs& p, const SlicedPlan& plan, const SlicedBound& bound, unsigned* verdict,
                        const Context& ctx) {
  static std::atomic<uint64_t> raised{0};
  static PerDevice known;
  const auto kernel = mma_product_kernel<T>;
  if (raise_shared_limit(reinterpret_cast<const void*>(kernel), T::SHARED_BYTES, raised) != cudaSuccess) return;
  char* const memory = static_cast<char*>(ctx.workspace);
  const MmaPlan product{
      memory + plan.a_slices,
      memory + plan.b_slices,
      int(plan.k_blocks),
      int(ceil_div(p.m, T::BM)),
      int(ceil_div(p.n, T::BN)),
      by16(p.c.data, p.c.rs),
      {reinterpret_cast<const unsigned*>(memory + plan.guard), int(plan.a_groups), int(plan.a_groups + plan.b_groups),
       unsigned(p.k), bound.both_large, verdict, nullptr},
      {reinterpret_cast<const int*>(memory + plan.a_exponents), reinterpret_cast<const int*>(memory + plan.b_exponents),
       p.c.data, p.c.rs, int(p.m), int(p.n), p.alpha, p.beta}};
  const int64_t tiles = int64_t{product.tile_rows} * product.tile_cols;
  const auto blocks = static_cast<unsigned>(tiles < ctx.sm_count ? tiles : ctx.sm_count);
  launch_overlapping(kernel, GridShape{blocks, T::THREADS, 1, T::SHARED_BYTES}, ctx, known, product);
}

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const SlicedPlan plan(p, Slices::fp16x2);
  const SlicedBound bound(Slices::fp16x2, p.k, MMA_ERROR);
  auto* const verdict = reinterpret_cast<unsigned*>(static_cast<char*>(ctx.workspace) + plan.verdicts);
  launch_split<Fp16Slices>(p, plan, bound, nullptr, ctx);
  if (mma_choice(p.m, p.n, ctx.sm_count).large) launch_mma_product<Large>(p, plan, bound, verdict, ctx);
  else launch_mma_product<Flat>(p, plan, bound, verdict, ctx);
  launch_sliced_fallback(p, verdict, ctx);
}

}  // namespace

void sgemm_fp16x2_mma(const SgemmArgs& p, const Context& ctx) {
  if (!sliced_fits(p.k) || !std::isfinite(p.alpha)) return launch_sliced_fallback(p, nullptr, ctx);
  for (int64_t i = 0; i < p.batch; ++i) multiply_one(problem_of(p, i), ctx);
}

}  // namespace fl
