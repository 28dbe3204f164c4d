// fp16x2 for GPUs whose tensor cores take 8 k at a time and which copy nothing asynchronously, from compute capability
// 7.5 on: the product of sgemm_fp16x2_mma.cu by instructions half as long, with operands by way of registers, in 64 KiB
// of shared memory. What two terms cannot hold goes to plain float32 at once: there is no bf16 before 8.0.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/mma_launch.cuh"

namespace fl {
namespace {

using Tall = MmaTile<Fp16Terms, 32, 2, 4, 4, 2, 1, 2, 1, false>;
using Square = MmaTile<Fp16Terms, 32, 1, 4, 4, 2, 1, 2, 1, false>;

static_assert(is_planned_as<Tall>(fp16x2_mma_k8_tiles[0]) && is_planned_as<Square>(fp16x2_mma_k8_tiles[1]),
              "a tile has another size or other parts of k than the plan reckons with");

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2), Terms::fp16x2, ctx);
  const RangeBound bound(Terms::fp16x2, p.k, MMA_K8_ERROR, Tall::BK);
  launch_split<Fp16Terms>(p, at, bound, nullptr, ctx);
  const int tile = choose_mma_tile(MmaProduct::fp16x2_k8, p.m, p.n, p.k, *ctx.device).tile;
  if (!launch_mma<Tall, Square>(tile, {p, at, bound, nullptr, at.statuses, true, ctx}))
    launch_float32_fallback(p, at.statuses, ctx);
}

}  // namespace

void sgemm_fp16x2_mma_k8(const SgemmArgs& p, const Context& ctx) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
  for_each_problem(p, ctx, multiply_one);
}

}  // namespace fl
