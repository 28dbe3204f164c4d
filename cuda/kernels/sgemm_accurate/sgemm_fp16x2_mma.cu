// fp16x2 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the same
// split pass and range check (sgemm_fp16x2.cu), and a product of mma.sync instructions. What two terms cannot hold runs
// in float32, as three bf16 terms are Hopper's alone.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/launch.cuh"
#include "cuda/kernels/sgemm_accurate/mma_sync.cuh"

namespace fl {
namespace {

using Large = MmaTile<4, 2>;
using Flat = MmaTile<2, 2>;

template <class T>
void launch_mma_product(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound, const Context& ctx) {
  const MmaPlan product{at.a.terms,
                        at.b.terms,
                        int(at.k_blocks),
                        int(ceil_div(p.m, T::BM)),
                        int(ceil_div(p.n, T::BN)),
                        aligned<4>(p.c.data, p.c.rs),
                        range_check_of(p, at, bound, nullptr, at.statuses),
                        epilogue_of(p, at)};
  const int64_t tiles = int64_t{product.tile_rows} * product.tile_cols;
  const auto blocks = static_cast<unsigned>(tiles < ctx.sm_count ? tiles : ctx.sm_count);
  launch_kernel<mma_sync_kernel<T>>({blocks, T::THREADS, T::SHARED_BYTES}, ctx, product);
}

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2), Terms::fp16x2, ctx);
  const RangeBound bound(Terms::fp16x2, p.k, MMA_ERROR);
  launch_split<Fp16Terms>(p, at, bound, nullptr, ctx);
  if (choose_mma_tile(p.m, p.n, ctx.sm_count).large) launch_mma_product<Large>(p, at, bound, ctx);
  else launch_mma_product<Flat>(p, at, bound, ctx);
  launch_float32_fallback(p, at.statuses, ctx);
}

}  // namespace

void sgemm_fp16x2_mma(const SgemmArgs& p, const Context& ctx) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
  for_each_problem(p, ctx, multiply_one);
}

}  // namespace fl
