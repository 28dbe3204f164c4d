// fp16x2 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the same
// split pass, guard and verdict (sgemm_fp16x2.cu), and a product of mma.sync instructions. What two slices cannot hold
// runs in float32, as three bf16 slices are Hopper's alone.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/mma_product.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_launch.cuh"

namespace fl {
namespace {

using Large = MmaTile<4, 2>;
using Flat = MmaTile<2, 2>;

template <class T>
void launch_mma_product(const SgemmArgs& p, const SlicedOperands& at, const SlicedBound& bound, const Context& ctx) {
  const MmaPlan product{at.a.slices,
                        at.b.slices,
                        int(at.k_blocks),
                        int(ceil_div(p.m, T::BM)),
                        int(ceil_div(p.n, T::BN)),
                        aligned<4>(p.c.data, p.c.rs),
                        guard_of(p, at, bound, nullptr, at.verdicts),
                        epilogue_of(p, at)};
  const int64_t tiles = int64_t{product.tile_rows} * product.tile_cols;
  const auto blocks = static_cast<unsigned>(tiles < ctx.sm_count ? tiles : ctx.sm_count);
  launch_kernel<mma_product_kernel<T>>({blocks, T::THREADS, T::SHARED_BYTES}, ctx, product);
}

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const SlicedOperands at(p, SlicedPlan(p, Slices::fp16x2), Slices::fp16x2, ctx);
  const SlicedBound bound(Slices::fp16x2, p.k, MMA_ERROR);
  launch_split<Fp16Slices>(p, at, bound, nullptr, ctx);
  if (mma_choice(p.m, p.n, ctx.sm_count).large) launch_mma_product<Large>(p, at, bound, ctx);
  else launch_mma_product<Flat>(p, at, bound, ctx);
  launch_sliced_fallback(p, at.verdicts, ctx);
}

}  // namespace

void sgemm_fp16x2_mma(const SgemmArgs& p, const Context& ctx) {
  if (!sliced_fits(p.k) || !std::isfinite(p.alpha)) return launch_sliced_fallback(p, nullptr, ctx);
  for_each_problem(p, ctx, multiply_one);
}

}  // namespace fl
