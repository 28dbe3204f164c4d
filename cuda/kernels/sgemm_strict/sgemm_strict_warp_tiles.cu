// Strict SGEMM for batches of products of 16 or 32 rows and columns: a warp to a tile, and when it is done, to another.
//
// Such a product is a few kilobytes and a microsecond of work for a warp. What counts is that the loads of the next one
// are under way meanwhile: every warp copies its operands into a pipeline of its own, across the border of two tiles,
// and waits for nobody. Every output is one chain of FMAs in ascending k.
//
// Bound: memory, 12 bytes an element of three square matrices.
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_strict/warp_tiles.cuh"

namespace fl {
namespace {

struct WarpTilePlan {
  Operand a, b;
  TileGrid grid;
};

// A warp's way through its tiles, and along k in each.
template <class T>
struct WarpWalk {
  unsigned tile, by;
  int64_t k = 0;

  __device__ __forceinline__ void next(const SgemmArgs& p) {
    k += T::BK;
    if (k >= p.k) k = 0, tile += by;
  }
};

// Starts the copies of one stage; behind the last tile an empty group keeps the count of groups right.
template <class T>
__device__ __forceinline__ void copy_stage(const SgemmArgs& p, const WarpTilePlan& plan, WarpWalk<T>& walk,
                                           uint32_t stage, int lane) {
  if (walk.tile < plan.grid.total) {
    copy_operands<T>(p, plan.a, plan.b, plan.grid.tile(walk.tile), walk.k, stage, lane);
    walk.next(p);
  }
  ptx::commit_copies();
}

// Stores the sums of a tile.
template <class T>
__device__ __forceinline__ void store_tile(const SgemmArgs& p, const Tile& tile, const float (&acc)[T::TM][T::TN],
                                           int lane_id) {
  const Lane lane(lane_id);
  const Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
#pragma unroll
  for (int i = 0; i < T::TM; ++i) {
    float* row = at.c + (i * 8 + lane.row) * p.c.rs + lane.col * 4;
    const int exist = i * 8 + lane.row < at.rows ? at.cols - lane.col * 4 : 0;
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) {
      const float4 sum = {acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]};
      if constexpr (T::C16) put4(p, row + j * 4, exist - j * 4, sum);
      else put_turned(p, at, i * 8, 1, j * 4, lane_id, sum);
    }
  }
}

// Without asynchronous copies the loads of a stage wait in registers while the one before it is multiplied.
template <class T>
struct WarpStage {
  RegisterCopy<T::BM, T::BK, 32> a;
  RegisterCopy<T::BK, T::BN, 32> b;

  __device__ __forceinline__ WarpStage(const SgemmArgs& p, const WarpTilePlan& plan, const WarpWalk<T>& walk,
                                       const Tile& tile, int lane)
      : a(plan.a, first_of(plan.a, tile.batch, tile.row * T::BM, walk.k), minus_zeros, lane),
        b(plan.b, first_of(plan.b, tile.batch, walk.k, tile.col * T::BN), plus_zeros, lane) {
    a.lines = static_cast<int>(min(p.m - tile.row * T::BM, int64_t{T::BM}));
    b.length = static_cast<int>(min(p.n - tile.col * T::BN, int64_t{T::BN}));
    a.length = b.lines = k_left(p.k - walk.k, T::BK);
    a.fetch();
    b.fetch();
  }
};

template <class T>
__device__ __forceinline__ void block_by_registers(const SgemmArgs& p, const WarpTilePlan& plan) {
  extern __shared__ __align__(128) unsigned char memory[];
  const int warp = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const uint32_t shared = ptx::shared_address(memory), stage = shared + warp * T::STAGE_BYTES;
  WarpWalk<T> walk{blockIdx.x * T::WARPS + warp, gridDim.x * T::WARPS};
  pdl_wait();
  const auto fetch = [&] { return WarpStage<T>(p, plan, walk, plan.grid.tile(walk.tile), lane_id); };
  if (walk.tile >= plan.grid.total) return;
  WarpStage<T> next = fetch();
#pragma unroll 1
  for (unsigned number = walk.tile; number < plan.grid.total; number += walk.by) {
    float acc[T::TM][T::TN] = {};
#pragma unroll 1
    for (int64_t k = 0; k < p.k; k += T::BK) {
      __syncwarp();  // all lanes have read the stage
      next.a.store(stage);
      next.b.store(stage + T::CopyA::BYTES);
      __syncwarp();
      walk.next(p);
      if (walk.tile < plan.grid.total) next = fetch();
      multiply_stage<T>(acc, stage, Lane(lane_id));
    }
    store_tile<T>(p, plan.grid.tile(number), acc, lane_id);
  }
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    strict_warp_tile_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ WarpTilePlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int warp = threadIdx.x / 32, lane_id = threadIdx.x % 32;
  const Lane lane(lane_id);
  const uint32_t shared = ptx::shared_address(memory), pipeline = shared + warp * T::PIPELINE_BYTES;
  WarpWalk<T> walk{p.k > 0 ? blockIdx.x * T::WARPS + warp : plan.grid.total, gridDim.x * T::WARPS};
  pdl_wait();
  int into = 0, from = 0;
  auto copy_next = [&] {
    copy_stage<T>(p, plan, walk, pipeline + into * T::STAGE_BYTES, lane_id);
    into = into + 1 == T::STAGES ? 0 : into + 1;
  };
#pragma unroll
  for (int s = 0; s < T::STAGES - 1; ++s) copy_next();
#pragma unroll 1
  for (unsigned number = blockIdx.x * T::WARPS + warp; number < plan.grid.total; number += gridDim.x * T::WARPS) {
    float acc[T::TM][T::TN] = {};
#pragma unroll 1
    for (int64_t k = 0; k < p.k; k += T::BK) {
      __syncwarp();  // all lanes have read the stage that is filled next
      copy_next();
      ptx::wait_copies<T::STAGES - 1>();
      __syncwarp();  // all lanes' copies have arrived
      multiply_stage<T>(acc, pipeline + from * T::STAGE_BYTES, lane);
      from = from + 1 == T::STAGES ? 0 : from + 1;
    }
    store_tile<T>(p, plan.grid.tile(number), acc, lane_id);
  }
#else
  block_by_registers<T>(p, plan);
#endif
}

// For devices that have none. Code for them is such a kernel by either name.
template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    strict_warp_tile_by_registers_kernel(const __grid_constant__ SgemmArgs p,
                                         const __grid_constant__ WarpTilePlan plan) {
  block_by_registers<T>(p, plan);
}

template <class T>
void launch_warp_tiles(const SgemmArgs& p, const Context& ctx) {
  const WarpTilePlan plan{operand(p.a, p.a.rs, p.a.cs), operand(p.b, p.b.rs, p.b.cs),
                          TileGrid(p.m, p.n, p.batch, T::BM, T::BN)};
  const bool async = ctx.device->has(feature_cp_async);
  const int shared = async ? T::SHARED_BYTES : T::ONE_STAGE_BYTES;
  const int64_t fitting = int64_t(ctx.device->shared_per_sm) / (shared + (async ? SYSTEM_SHARED : 0));
  const int64_t wanted = ceil_div(int64_t{plan.grid.blocks()}, T::WARPS);
  const int64_t most = (fitting < T::BLOCKS ? fitting : T::BLOCKS) * int64_t{ctx.sm_count};
  const auto blocks = static_cast<unsigned>(wanted < most ? wanted : most);
  if (async) launch_kernel<strict_warp_tile_kernel<T>>({blocks, T::THREADS, shared}, ctx, p, plan);
  else launch_kernel<strict_warp_tile_by_registers_kernel<T>>({blocks, T::THREADS, shared}, ctx, p, plan);
}

}  // namespace

void sgemm_strict_16x16w(const SgemmArgs& p, const Context& ctx) {
  aligned16(p.c) ? launch_warp_tiles<TileOfAWarp<strict_16x16w, true>>(p, ctx)
                 : launch_warp_tiles<TileOfAWarp<strict_16x16w, false>>(p, ctx);
}

}  // namespace fl
