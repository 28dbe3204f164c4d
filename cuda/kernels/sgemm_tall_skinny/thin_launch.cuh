// The launch of a kernel for thin products.
#pragma once

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

template <class T>
void launch_thin(void (*kernel)(ThinArgs), const SgemmArgs& p, const ThinPlan& plan, const Context& ctx) {
  static std::atomic<uint64_t> raised{0};
  constexpr int most_shared_bytes = 232448;
  if (raise_shared_limit(reinterpret_cast<const void*>(kernel), most_shared_bytes, raised) != cudaSuccess) return;
  const ThinArgs args = thin_args<T>(p, plan, ctx);
  const int chunks = plan.split_k > T::Chunk::KC ? 2 : 1;
  const int rings = chunks * args.chunk_bytes + plan.warps * args.slots * T::SLOT_BYTES;
  const int sums = plan.warps * T::SUM_BYTES;
  const auto blocks = static_cast<unsigned>(plan.strips * plan.panels * p.batch) * args.splits;
  launch_overlapping(kernel, {blocks, 32 * plan.warps, rings > sums ? rings : sums}, stream(ctx), raised, args);
  if (plan.splits > 1) sum_splits(p, plan.splits, args.sums, p.n, ctx);
}

}  // namespace
}  // namespace fl
