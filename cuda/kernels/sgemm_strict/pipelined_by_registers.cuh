// The copying warps of pipelined.cuh where there are no asynchronous copies.
#pragma once

#include "cuda/kernels/sgemm_strict/pipelined.cuh"
#include "cuda/kernels/sgemm_strict/register_copy.cuh"

namespace fl {

// A step is loaded while the one before it waits for room.
template <class T>
__device__ __forceinline__ void produce_by_registers(const SgemmArgs& p, const PipelinedPlan& plan, uint32_t shared,
                                                     int t) {
  PipelineState<T> pipeline{shared, 0, 0};
  for (unsigned number = first_unit<T>(); number < end_of_units<T>(plan); number += to_next_unit<T>()) {
    const WorkUnit unit = work_unit<T>(plan, 0, number);
    if (!unit.exists) continue;
    const Steps steps = unit.steps;
    const Tile tile = tile_of<T>(plan, unit.tile);
    const int64_t row = tile.row * T::BM, col = tile.col * T::BN, k = int64_t{steps.first} * T::BK;
    constexpr bool MANY_STEPS = !T::IN_BLOCKS;
    RegisterCopy<T::BK, T::BM, T::PRODUCER_THREADS, MANY_STEPS> a(plan.a, first_of(plan.a, tile.batch, k, row),
                                                                  minus_zeros, t);
    RegisterCopy<T::BK, T::BN, T::PRODUCER_THREADS, MANY_STEPS> b(plan.b, first_of(plan.b, tile.batch, k, col),
                                                                  plus_zeros, t);
    a.length = static_cast<int>(min(p.m - row, int64_t{T::BM}));
    b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
    pdl_wait();
    by_path(plan.a.path, [&]<CopyPath A> {
      by_path(plan.b.path, [&]<CopyPath B> {
#pragma unroll 1
        for (int step = steps.count; step > 0; --step) {
          if (step == 1 && steps.first + steps.count == plan.steps) a.lines = b.lines = plan.tail;
          a.template fetch<A>();
          b.template fetch<B>();
          if (pipeline.phase != 0) pipeline.producer_acquire();
          a.template store<A>(pipeline.tiles());
          b.template store<B>(pipeline.tiles() + T::A_BYTES);
          pipeline.producer_commit();
          a.next_lines();
          b.next_lines();
          if (++pipeline.stage == T::STAGES) pipeline.stage = 0, pipeline.phase = 1;  // stages have been full
        }
      });
    });
  }
}

}  // namespace fl
