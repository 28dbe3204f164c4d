// Products in slabs: the loop over groups of blocks of k, and the second kernel, which adds what the blocks of a group
// have left in the workspace to C, one after the other. It starts while the first kernel runs and waits for it.
#pragma once

#include "core/layout.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemm_reproducible/order.cuh"

namespace fl {
namespace {

constexpr int ADD_THREADS = 256;

// [slab][problem][row][ld]; `count` of them, of which the first one is that of the first block of k or not.
struct Slabs {
  float* sums;
  int64_t ld, stride;
  int count;
  bool first, c_by16;
};

// Four neighbours of a row to a thread, some of whose sums are under way together.
__global__ void __launch_bounds__(ADD_THREADS)
    add_slabs_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ Slabs slabs) {
  constexpr int AT_A_TIME = 8;
  const int64_t quad = int64_t{blockIdx.x} * ADD_THREADS + threadIdx.x, a_row = slabs.ld / 4;
  const int64_t row = quad / a_row, col = (quad - row * a_row) * 4;
  if (row >= p.m * p.batch) return;
  float* const c = p.c.data + row / p.m * p.c.bs + row % p.m * p.c.rs + col * p.c.cs;
  const int exist = p.n - col < 4 ? static_cast<int>(p.n - col) : 4;
  const float* from = slabs.sums + quad * 4;
  pdl_wait();
  alignas(16) float result[4] = {};
  BlockUpdate update(p, slabs.first);
  if (slabs.c_by16) update.load4(result, c, exist);
  else if (update.reads)
    for (int j = 0; j < 4; ++j)
      if (j < exist) result[j] = c[j * p.c.cs];
#pragma unroll 1
  for (int s = 0; s < slabs.count; s += AT_A_TIME) {
    float4 sums[AT_A_TIME];
#pragma unroll
    for (int i = 0; i < AT_A_TIME; ++i)
      if (s + i < slabs.count) sums[i] = __ldcg(reinterpret_cast<const float4*>(from + (s + i) * slabs.stride));
#pragma unroll
    for (int i = 0; i < AT_A_TIME; ++i) {
      if (s + i >= slabs.count) break;
#pragma unroll
      for (int j = 0; j < 4; ++j) result[j] = update(component(sums[i], j), result[j]);
      update = BlockUpdate(p, false);
    }
  }
  if (slabs.count == 0)  // an empty sum
    for (float& x : result) x = update(0.0f, x);
  pdl_launch_next();
  if (slabs.c_by16 && exist == 4) return copy4(c, result);
  for (int j = 0; j < 4; ++j)
    if (j < exist) c[j * p.c.cs] = result[j];
}

// Where outputs are few and slabs many: eight warps fetch the sums of 32 outputs, and one adds them up out of shared
// memory. One by one from L2, 256 slabs would take some 10 us.
__global__ void __launch_bounds__(ADD_THREADS)
    add_many_slabs_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ Slabs slabs) {
  constexpr int WARPS = ADD_THREADS / 32, EACH = 16, ROUND = WARPS * EACH;
  __shared__ float stage[2][ROUND][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t place = int64_t{blockIdx.x} * 32 + lane, row = place / slabs.ld, col = place - row * slabs.ld;
  const bool exists = row < p.m * p.batch && col < p.n;
  float* const c = p.c.data + row / p.m * p.c.bs + row % p.m * p.c.rs + col * p.c.cs;
  pdl_wait();
  float next[EACH];
  auto fetch = [&](int first) {
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
      const int s = first + i * WARPS + warp;
      if (exists && s < slabs.count) next[i] = __ldcg(slabs.sums + place + s * slabs.stride);
    }
  };
  auto stage_fetched = [&](int into) {
#pragma unroll
    for (int i = 0; i < EACH; ++i) stage[into][i * WARPS + warp][lane] = next[i];
  };
  BlockUpdate update(p, slabs.first);
  float result = exists && update.reads && warp == 0 ? *c : 0.0f;
  fetch(0);
  stage_fetched(0);
  __syncthreads();
  int from = 0;
#pragma unroll 1
  for (int first = 0; first < slabs.count; first += ROUND, from ^= 1) {
    if (first + ROUND < slabs.count) fetch(first + ROUND);
    if (warp == 0) {
      const int here = min(ROUND, slabs.count - first);
      result = update(stage[from][0][lane], result);
      update = BlockUpdate(p, false);
#pragma unroll 8
      for (int s = 1; s < here; ++s) result = update(stage[from][s][lane], result);
    }
    if (first + ROUND < slabs.count) stage_fetched(from ^ 1);
    __syncthreads();
  }
  pdl_launch_next();
  if (exists && warp == 0) *c = result;
}

inline void add_slabs(const SgemmArgs& p, const Slabs& slabs, const Context& ctx) {
  const int64_t floats = p.batch * p.m * slabs.ld;
  if (slabs.count >= 24 && floats <= 1 << 17)
    return launch_kernel<add_many_slabs_kernel>({static_cast<unsigned>(ceil_div(floats, int64_t{32})), ADD_THREADS},
                                                ctx, p, slabs);
  launch_kernel<add_slabs_kernel>({static_cast<unsigned>(ceil_div(floats / 4, int64_t{ADD_THREADS})), ADD_THREADS}, ctx,
                                  p, slabs);
}

inline SgemmArgs problems_from(const SgemmArgs& p, int64_t first, int64_t count) {
  SgemmArgs part = p;
  part.batch = std::min(count, p.batch - first);
  part.a.data += first * p.a.bs, part.b.data += first * p.b.bs, part.c.data += first * p.c.bs;
  return part;
}

// Calls multiply(problems, first, slabs) for each group of blocks of k whose slabs fit the workspace, from the block
// `first` on, and adds the slabs to C. An empty sum has one group, of no block.
template <class Multiply>
void for_each_group(const SgemmArgs& call, const SlabPlan& plan, const Context& ctx, Multiply&& multiply) {
  const SgemmArgs all = with_empty_sum(call);
  const int64_t blocks = blocks_of_k(all);
  for (int64_t problem = 0; problem < all.batch; problem += plan.problems) {
    const SgemmArgs p = problems_from(all, problem, plan.problems);
    int64_t first = 0;
    do {
      const auto count = static_cast<int>(std::min(plan.at_a_time, blocks - first));
      const Slabs slabs{static_cast<float*>(ctx.workspace), plan.ld, p.batch * p.m * plan.ld, count, first == 0,
                        row_major(p.c) && aligned16(p.c)};
      multiply(p, first, slabs);
      add_slabs(p, slabs, ctx);
      first += count;
    } while (first < blocks);
  }
}

}  // namespace
}  // namespace fl
