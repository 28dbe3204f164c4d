// The launch of a kernel for thin products.
#pragma once

#include "core/device_spec.h"
#include "cuda/kernels/common/sum_splits.cuh"
#include "cuda/kernels/sgemm_tall_skinny/thin.cuh"

namespace fl {
namespace {

template <class T>
ThinArgs thin_args(const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  const int chunk = static_cast<int>(plan.split_k < T::Chunk::KC ? plan.split_k : T::Chunk::KC);
  const int64_t steps = ceil_div(plan.split_k, T::step_k(plan.warps));
  return {p,
          static_cast<float*>(ctx.workspace),
          static_cast<unsigned>(plan.strips),
          static_cast<unsigned>(plan.panels),
          static_cast<unsigned>(plan.splits),
          plan.split_k,
          T::Chunk::bytes(chunk),
          static_cast<int>(steps < T::SLOTS ? steps : T::SLOTS),
          moves_by16(p.a),
          right_by16(p, plan)};
}

template <class T, auto KERNEL>
void launch_thin(const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  const ThinArgs args = thin_args<T>(p, plan, ctx);
  const int chunks = plan.split_k > T::Chunk::KC ? 2 : 1;
  const int rings = chunks * args.chunk_bytes + plan.warps * args.slots * T::SLOT_BYTES;
  const int sums = plan.warps * T::SUM_BYTES;
  const auto blocks = static_cast<unsigned>(plan.strips * plan.panels * p.batch) * args.splits;
  launch_kernel<KERNEL>({.blocks = blocks,
                         .threads = 32 * plan.warps,
                         .shared_bytes = rings > sums ? rings : sums,
                         .most_shared_bytes = capability(90).shared_per_block},
                        ctx, args);
  if (plan.splits > 1) sum_splits(p, plan.splits, args.sums, p.n, ctx);
}

}  // namespace
}  // namespace fl
