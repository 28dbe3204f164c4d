// The TMA variants of the kernels of cluster_split_k.cuh, for full tiles of one product whose rows of A, B and C are
// aligned: operands arrive in boxes by tensor maps, two to a stage.
//
// Below 500 rows and columns a third of the time went into the copies: a 16-byte one takes a multiprocessor 20 cycles
// for each of a warp, 25 bytes a cycle; boxes arrive at 100, as multiprocessors that want the same lines at the same
// time get them from one request. And the kernel is a third as long: every launch fetches its instructions anew.
//
// A box of A has rows of 64 bytes, whose four parts are swizzled by bits 1 and 2 of the row: eight rows that are read
// at once lie in 32 different banks.
#pragma once

#include <algorithm>

#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_strict/cluster_split_k.cuh"

namespace fl {

struct TmaMaps {
  CUtensorMap a, b;
};

// One warp's stages: the first lane fills them.
template <class T>
struct TmaStages {
  uint32_t pipeline, barriers;
  int row, col, k;

  __device__ __forceinline__ void prepare() const {
    for (int s = 0; s < T::STAGES; ++s) ptx::barrier_init(barriers + s * 8, 1);
    ptx::barrier_init_fence();
  }
  __device__ __forceinline__ void fill(const TmaMaps& maps, int stage) {
    const uint32_t to = pipeline + stage * T::STAGE_BYTES, barrier = barriers + stage * 8;
    ptx::barrier_expect(barrier, T::STAGE_BYTES);
    ptx::load_box(to, &maps.a, k, row, barrier);
    ptx::load_box(to + T::A_BYTES, &maps.b, col, k, barrier);
    k += T::BK;
  }
};

// math.acc = the product over `count` stages, in ascending k. What is loaded behind the last of them is not used.
template <class T>
__device__ __forceinline__ void multiply_tma_range(RangeMath<T>& math, TmaStages<T>& stages, const TmaMaps& maps,
                                                   int count, int lane_id) {
  constexpr int B_ROW = T::BN * 4;
  const Lane lane(lane_id);
  const uint32_t swizzle = lane.row / 2 % 4, a_at = lane.row * T::BK * 4, b_at = T::A_BYTES + lane.col * 16;
  int now = 0;
  uint32_t phase = 0, stage = stages.pipeline, b = stage + b_at;
  ptx::barrier_wait(stages.barriers, phase);
  math.start(stage + a_at + swizzle * 16, b);
#pragma unroll 1
  for (int n = 0; n < count; ++n) {
#pragma unroll 1
    for (uint32_t part = 1; part < T::BK / 4; ++part, b += 4 * B_ROW)
      math.four_k(b, stage + a_at + (part ^ swizzle) * 16, b + 4 * B_ROW);
    const int next = now + 1 == T::STAGES ? 0 : now + 1;
    if (next == 0) phase ^= 1;
    stage = stages.pipeline + next * T::STAGE_BYTES;
    if (n + 1 < count) ptx::barrier_wait(stages.barriers + next * 8, phase);
    math.four_k(b, stage + a_at + swizzle * 16, stage + b_at);
    if (n + T::STAGES < count) {
      __syncwarp();  // all lanes have read the stage
      if (lane_id == 0) stages.fill(maps, now);
    }
    now = next, b = stage + b_at;
    math.runs.stage_done(math.acc);
  }
  math.runs.end(math.acc);
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    strict_cluster_split_k_tma_kernel(const __grid_constant__ SgemmArgs p,
                                      const __grid_constant__ ClusterSplitKPlan plan,
                                      const __grid_constant__ TmaMaps maps) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(1024) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, warp = t / 32, rank = static_cast<int>(blockIdx.x % T::CLUSTER_K);
  const Tile tile = plan.grid.tile(blockIdx.x / T::CLUSTER_K);
  const auto row = static_cast<int>(tile.row) * T::BM, col = static_cast<int>(tile.col) * T::BN;
  const auto range = static_cast<int>(plan.range), count = range / T::BK;
  TmaStages<T> stages{shared + warp * T::PIPELINE_BYTES, shared + T::BARRIERS + warp * T::STAGES * 8, row, col,
                      (rank * T::K_GROUPS + warp) * range};
  const typename T::Sum cluster{shared + T::INBOX, rank};
  if (t == 0) {
    ptx::prefetch_map(&maps.a);
    ptx::prefetch_map(&maps.b);
  }
  if (warp == 0) cluster.prepare(t);
  if (t % 32 == 0) stages.prepare();
  __syncwarp();
  ptx::cluster_arrive();
  pdl_launch_next();
  pdl_wait();

  if (t % 32 == 0)
    for (int s = 0; s < min(T::STAGES, count); ++s) stages.fill(maps, s);
  __syncwarp();
  RangeMath<T> math;
  multiply_tma_range(math, stages, maps, count, t % 32);
  __syncwarp();  // the warp's pipeline is free
  math.store(stages.pipeline, plan.one, t % 32);
  __syncthreads();
  sum_ranges<T>(p, plan, corner(p, 0, row, col), cluster, shared, t);
#else
  not_for_this_target();
#endif
}

// The maps, if all tiles and ranges are full. The copy engine counts elements in 32 bits with a sign, and its rows
// follow one another: those of a broadcast or a reversed operand do not.
template <class T>
bool tma_maps(TmaMaps& maps, const SgemmArgs& p, const ClusterSplitKPlan& plan) {
  constexpr int64_t most = 1 << 30;
  return p.batch == 1 && p.m % T::BM == 0 && p.n % T::BN == 0 && p.k > 0 &&
         plan.range * T::K_GROUPS * T::CLUSTER_K == p.k && std::max({p.m, p.n, p.k}) < most &&
         plan.a.path == CopyPath::by16 && plan.b.path == CopyPath::by16 && plan.a.ld >= p.k && plan.b.ld >= p.n &&
         plan.c_by16 && tensor_map(maps.a, p.a.data, p.m, p.k, plan.a.ld, T::BM, T::BK, CU_TENSOR_MAP_SWIZZLE_64B) &&
         tensor_map(maps.b, p.b.data, p.k, p.n, plan.b.ld, T::BK, T::BN, CU_TENSOR_MAP_SWIZZLE_NONE);
}

template <class T>
LaunchShape cluster_split_k_shape(const ClusterSplitKPlan& plan) {
  return {plan.grid.blocks() * T::CLUSTER_K, T::THREADS, T::SHARED_BYTES, T::CLUSTER_K};
}

template <ClusterSplitKTile TILE, bool RUNS>
void launch_cluster_split_k(const SgemmArgs& p, const ClusterSplitKPlan& plan, const Context& ctx) {
  using Boxes = ClusterSplitK<TILE, RUNS, true>;
  using Copies = ClusterSplitK<TILE, RUNS>;
  TmaMaps maps;
  if (!ctx.group && tma_maps<Boxes>(maps, p, plan))
    launch_kernel<strict_cluster_split_k_tma_kernel<Boxes>>(cluster_split_k_shape<Boxes>(plan), ctx, p, plan, maps);
  else
    launch_or_keep<strict_cluster_split_k_kernel<Copies>,
                   group_kernel<compute_block<Copies>, Copies::THREADS, 1, ClusterSplitKPlan>>(
        cluster_split_k_shape<Copies>(plan), ctx, p, plan);
}

template <ClusterSplitKTile TILE>
void strict_cluster_split_k(const SgemmArgs& p, const Context& ctx) {
  const ClusterSplitKPlan plan{operand(p.a, p.a.rs, p.a.cs),
                               operand(p.b, p.b.rs, p.b.cs),
                               TileGrid(p.m, p.n, p.batch, TILE.BM, TILE.BN),
                               warp_range(p.k, TILE),
                               aligned16(p.c),
                               1.0f};
  if (sums_in_runs(p, TILE)) launch_cluster_split_k<TILE, true>(p, plan, ctx);
  else launch_cluster_split_k<TILE, false>(p, plan, ctx);
}

}  // namespace fl
