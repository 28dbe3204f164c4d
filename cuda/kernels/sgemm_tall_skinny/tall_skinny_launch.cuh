// The launch of a kernel for tall-skinny products.
#pragma once

#include "core/device_spec.h"
#include "cuda/kernels/common/split_k.cuh"
#include "cuda/kernels/sgemm_tall_skinny/tall_skinny.cuh"

namespace fl {
namespace {

template <class T>
TallSkinnyArgs tall_skinny_args(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  const int chunk = static_cast<int>(plan.split_k < T::Chunk::KC ? plan.split_k : T::Chunk::KC);
  const int64_t steps = ceil_div(plan.split_k, T::step_k(plan.warps));
  return {p,
          static_cast<float*>(ctx.workspace),
          static_cast<unsigned>(plan.row_blocks),
          static_cast<unsigned>(plan.panels),
          static_cast<unsigned>(plan.splits),
          plan.split_k,
          T::Chunk::bytes(chunk),
          static_cast<int>(steps < T::SLOTS ? steps : T::SLOTS),
          aligned16(p.a),
          right_aligned16(p, plan)};
}

// Of a block with the plan's warps: chunks of B and a ring for each warp, or in their place the warps' sums.
template <class T>
int tall_skinny_shared_bytes(const TallSkinnyPlan& plan, const TallSkinnyArgs& args) {
  const int chunks = plan.split_k > T::Chunk::KC ? 2 : 1;
  const int rings = chunks * args.chunk_bytes + plan.warps * args.slots * T::SLOT_BYTES;
  const int sums = plan.warps * T::SUM_BYTES;
  return rings > sums ? rings : sums;
}

// The plan with half as many warps to a block, which share fewer rows, or as many rows and k.
inline TallSkinnyPlan with_half_the_warps(const SgemmArgs& p, TallSkinnyPlan plan) {
  plan.warps /= 2;
  if (plan.rows) plan.row_blocks = ceil_div(p.m, plan.rows_of_warp() * plan.warps);
  return plan;
}

template <class T, auto KERNEL>
void launch_tall_skinny(const SgemmArgs& p, const TallSkinnyPlan& wanted, const Context& ctx) {
  const int most = static_cast<int>(ctx.device->shared_per_block);
  bool for_sm90 = false;
  if (prepare_kernel(launched<KERNEL>(), for_sm90, most) != cudaSuccess) return;
  TallSkinnyPlan plan = wanted;
  TallSkinnyArgs args = tall_skinny_args<T>(p, plan, ctx);
  const auto fits = [&] {
    return 32 * plan.warps <= most_threads<T>(for_sm90) && tall_skinny_shared_bytes<T>(plan, args) <= most;
  };
  while (plan.warps > 1 && !fits()) {
    plan = with_half_the_warps(p, plan);
    args = tall_skinny_args<T>(p, plan, ctx);
  }
  const auto blocks = static_cast<unsigned>(plan.row_blocks * plan.panels * p.batch) * args.splits;
  launch_kernel<KERNEL>({.blocks = blocks,
                         .threads = 32 * plan.warps,
                         .shared_bytes = tall_skinny_shared_bytes<T>(plan, args),
                         .most_shared_bytes = most},
                        ctx, args);
  reduce_split_k(p, {plan.splits, p.n}, ctx);
}

}  // namespace
}  // namespace fl
