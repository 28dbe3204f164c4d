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

template <class T, auto KERNEL>
void launch_tall_skinny(const SgemmArgs& p, const TallSkinnyPlan& plan, const Context& ctx) {
  const TallSkinnyArgs args = tall_skinny_args<T>(p, plan, ctx);
  const int chunks = plan.split_k > T::Chunk::KC ? 2 : 1;
  const int rings = chunks * args.chunk_bytes + plan.warps * args.slots * T::SLOT_BYTES;
  const int sums = plan.warps * T::SUM_BYTES;
  const auto blocks = static_cast<unsigned>(plan.row_blocks * plan.panels * p.batch) * args.splits;
  launch_kernel<KERNEL>({.blocks = blocks,
                         .threads = 32 * plan.warps,
                         .shared_bytes = rings > sums ? rings : sums,
                         .most_shared_bytes = MOST_SHARED_BYTES},
                        ctx, args);
  if (plan.splits > 1) reduce_split_k(p, plan.splits, args.sums, p.n, ctx);
}

}  // namespace
}  // namespace fl
