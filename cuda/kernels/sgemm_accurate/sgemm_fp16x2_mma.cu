// fp16x2 for GPUs with tensor cores but without Hopper's warpgroup products, from compute capability 8.0 on: the same
// split pass and range check (sgemm_fp16x2.cu), and a product of mma.sync instructions. What two terms cannot hold goes
// to bf16x6_mma in large products, and to plain float32.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/mma_launch.cuh"

namespace fl {
namespace {

using Large = MmaTile<Fp16Terms, 64, 4, 4, 2, 4, 1, 2, 1>;
using Tall = MmaTile<Fp16Terms, 64, 4, 4, 2, 2, 1, 2, 2>;
using Broad = MmaTile<Fp16Terms, 32, 3, 6, 4, 2, 1, 3, 1>;
using Even = MmaTile<Fp16Terms, 32, 4, 4, 2, 4, 1, 3, 1>;
using Middle = MmaTile<Fp16Terms, 32, 3, 8, 2, 1, 4, 2, 1>;
using Flat = MmaTile<Fp16Terms, 64, 2, 4, 1, 2, 2, 2, 2>;
using FlatBy4 = MmaTile<Fp16Terms, 32, 2, 4, 1, 2, 4, 2, 1>;
using BroadSingle = MmaTile<Fp16Terms, 32, 3, 6, 4, 2, 1, 3, 1, true, false>;

static_assert(is_planned_as<Large>(fp16x2_mma_tiles[0]) && is_planned_as<Tall>(fp16x2_mma_tiles[1]) &&
                  is_planned_as<Broad>(fp16x2_mma_tiles[2]) && is_planned_as<Even>(fp16x2_mma_tiles[3]) &&
                  is_planned_as<Middle>(fp16x2_mma_tiles[4]) && is_planned_as<Flat>(fp16x2_mma_tiles[5]) &&
                  is_planned_as<FlatBy4>(fp16x2_mma_tiles[6]) && is_planned_as<BroadSingle>(fp16x2_mma_tiles[7]),
              "a tile has another size or other parts of k than the plan reckons with");

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const AccurateSplitK split_k = mma_split_k(MmaProduct::fp16x2, p.m, p.n, p.k);
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2, TERM_BLOCK, split_k), Terms::fp16x2, ctx);
  const RangeBound bound(Terms::fp16x2, p.k, MMA_ERROR, Broad::BK);  // of all tiles, as operands may be prepacked
  const bool bf16x6 = has_bf16x6_fallback(p);
  const MmaLaunch launch{p, at, bound, nullptr, at.statuses, !bf16x6, ctx};
  bool falls_back = true;
  launch_split<Fp16Terms>(p, at, bound, nullptr, ctx);
  if (split_k.count == 1)
    falls_back = launch_mma<Large, Tall, Broad, Even, Middle, Flat, FlatBy4, BroadSingle>(
        choose_mma_tile(MmaProduct::fp16x2, p.m, p.n, p.k, *ctx.device).tile, launch);
  else if (ctx.device->shared_per_block >= Large::SHARED_BYTES) launch_mma_split_k<Large>(launch, split_k);
  else launch_mma_split_k<Tall>(launch, split_k);
  if (bf16x6) launch_bf16x6_mma(p, at.statuses, at.statuses + 1, ctx);  // in the workspace
  else if (!falls_back) launch_float32_fallback(p, at.statuses, ctx);
}

}  // namespace

void sgemm_fp16x2_mma(const SgemmArgs& p, const Context& ctx) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
  for_each_problem(p, ctx, multiply_one);
}

}  // namespace fl
