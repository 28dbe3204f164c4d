// Blocks of k of few tiles, each by one warp, which leaves the sums in the workspace for add_slabs.cuh.
//
// A warp goes from a tile of one block of k to the next, and its copies run ahead across that border too, as in
// sgemm_strict_warp_tiles.cu; but here a scheduler has two warps, with more of memory under way for each. The last
// block may be shorter.
#pragma once

#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/sgemm_reproducible/add_slabs.cuh"
#include "cuda/kernels/sgemm_reproducible/warp_ahead.cuh"

namespace fl {
namespace {

struct SlabTilesPlan {
  Operand a, b;
  TileGrid grid;
  Slabs slabs;
  int64_t first_k;  // of the first block
  unsigned tasks;   // tiles of all blocks
};

// Which tile of which block.
struct SlabTask {
  Tile tile;
  unsigned block;
  int64_t begin, end;  // of k

  __device__ __forceinline__ SlabTask(const SgemmArgs& p, const SlabTilesPlan& plan, unsigned number)
      : tile(plan.grid.tile(number % plan.grid.total)),
        block(number / plan.grid.total),
        begin(plan.first_k + block * REPRODUCIBLE_BLOCK),
        end(min(p.k, begin + REPRODUCIBLE_BLOCK)) {}
};

// A warp's way through its tasks, and along k in each.
template <class T>
struct SlabWalk {
  unsigned number, by;
  int64_t k = 0;  // behind the task's first one

  // Behind the last task an empty group keeps the count of groups right.
  __device__ __forceinline__ void copy(const SgemmArgs& p, const SlabTilesPlan& plan, uint32_t stage, int lane) {
    if (number < plan.tasks) {
      const SlabTask task(p, plan, number);
      copy_operands<T>(p, plan.a, plan.b, task.tile, task.begin + k, stage, lane);
      k += T::BK;
      if (task.begin + k >= task.end) k = 0, number += by;
    }
    ptx::commit_copies();
  }
};

template <class T>
__device__ __forceinline__ void store_in_slab(const SgemmArgs& p, const SlabTilesPlan& plan, const SlabTask& task,
                                              const float (&acc)[T::TM][T::TN], Lane lane) {
  const int64_t row0 = task.tile.row * T::BM + lane.row, col0 = task.tile.col * T::BN + lane.col * 4;
  float* const to = plan.slabs.sums + task.block * plan.slabs.stride + task.tile.batch * p.m * plan.slabs.ld;
#pragma unroll
  for (int i = 0; i < T::TM; ++i)
#pragma unroll
    for (int j = 0; j < T::TN / 4; ++j)
      if (row0 + i * 8 < p.m && col0 + j * 16 < plan.slabs.ld)
        copy4(to + (row0 + i * 8) * plan.slabs.ld + col0 + j * 16, &acc[i][j * 4]);
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    slab_tiles_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ SlabTilesPlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int warp = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const uint32_t pipeline = ptx::shared_address(memory) + warp * T::PIPELINE_BYTES;
  const unsigned first = warp * gridDim.x + blockIdx.x, by = gridDim.x * T::WARPS;  // few tasks: one to a scheduler
  SlabWalk<T> walk{first, by};
  pdl_wait();
  pdl_launch_next();
  int into = 0, from = 0;
  auto copy_next = [&] {
    walk.copy(p, plan, pipeline + into * T::STAGE_BYTES, lane_id);
    into = into + 1 == T::STAGES ? 0 : into + 1;
  };
#pragma unroll
  for (int s = 0; s < T::STAGES - 1; ++s) copy_next();
#pragma unroll 1
  for (unsigned number = first; number < plan.tasks; number += by) {
    const SlabTask task(p, plan, number);
    float acc[T::TM][T::TN] = {};
#pragma unroll 1
    for (int64_t k = task.begin; k < task.end; k += T::BK) {
      __syncwarp();  // all lanes have read the stage that is filled next
      copy_next();
      ptx::wait_copies<T::STAGES - 1>();
      __syncwarp();  // all lanes' copies have arrived
      multiply_ahead<T>(acc, pipeline + from * T::STAGE_BYTES, Lane(lane_id));
      from = from + 1 == T::STAGES ? 0 : from + 1;
    }
    store_in_slab<T>(p, plan, task, acc, Lane(lane_id));
  }
  ptx::wait_copies<0>();
#else
  not_for_this_target();
#endif
}

template <class T>
void launch_slab_tiles(const SgemmArgs& p, int64_t first_block, const Slabs& slabs, const Context& ctx) {
  SlabTilesPlan plan{in_whole_fours_of_k(operand(p.a, p.a.rs, p.a.cs), p.k),
                     operand(p.b, p.b.rs, p.b.cs),
                     TileGrid(p.m, p.n, p.batch, T::BM, T::BN),
                     slabs,
                     first_block * REPRODUCIBLE_BLOCK,
                     0};
  plan.tasks = plan.grid.total * static_cast<unsigned>(slabs.count);
  if (plan.tasks == 0) return;
  const int64_t wanted = ceil_div(int64_t{plan.tasks}, T::WARPS), most = int64_t{T::BLOCKS} * ctx.sm_count;
  const int64_t each = std::min<int64_t>(plan.tasks, ctx.sm_count);  // few tasks: one to a multiprocessor
  const auto blocks = static_cast<unsigned>(std::min(std::max(wanted, each), most));
  launch_kernel<slab_tiles_kernel<T>>({blocks, T::THREADS, T::PIPELINE_BYTES * T::WARPS}, ctx, p, plan);
}

}  // namespace
}  // namespace fl
