// precision="reproducible" for products of some microseconds: four warps have the same tile, each a block of k. When
// all are done with theirs, their sums are added to C in order, and they go on with the next four blocks. The pipelines
// of the warps run through meanwhile.
//
// A scheduler has one or two warps, so that nobody else works while one waits: what a warp has under way decides how
// long a k takes. Its copies are stages ahead of it, and its fragments four k.
#include "core/layout.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_reproducible/warp_ahead.cuh"

namespace fl {
namespace {

template <WarpTile TILE>
struct SharedTile : TileOfAWarp<TILE, true> {
  using Base = TileOfAWarp<TILE, true>;
  static constexpr int PITCH = padded_row(Base::BN), SUMS_BYTES = padded_bytes(Base::BM, Base::BN);
  static constexpr int SUMS = Base::WARPS * Base::PIPELINE_BYTES;  // where they begin
  static constexpr int SHARED_BYTES = SUMS + sums_bytes(TILE);
  static_assert(SHARED_BYTES <= SMALLEST_BLOCK_SHARED && Base::BLOCKS * (SHARED_BYTES + SYSTEM_SHARED) <= SM_SHARED);
  static constexpr int QUADS = Base::BM * Base::BN / 4, EACH = (QUADS + Base::THREADS - 1) / Base::THREADS;
};

struct SharedTilePlan {
  Operand a, b;
  TileGrid grid;
  bool c_by16;
};

// A warp's way along k: through every WARPS-th block.
template <class T>
struct BlockWalk {
  int64_t k;

  __device__ __forceinline__ explicit BlockWalk(int warp) : k(warp * REPRODUCIBLE_BLOCK) {}
  __device__ __forceinline__ void next(const SgemmArgs& p) {
    const int64_t block = k / REPRODUCIBLE_BLOCK;
    k += T::BK;
    if (k >= min(p.k, (block + 1) * REPRODUCIBLE_BLOCK)) k = (block + T::WARPS) * REPRODUCIBLE_BLOCK;
  }
};

template <class T>
__device__ __forceinline__ void copy_stage(const SgemmArgs& p, const SharedTilePlan& plan, const Tile& tile,
                                           BlockWalk<T>& walk, uint32_t stage, int lane) {
  if (walk.k < p.k) {
    copy_operands<T>(p, plan.a, plan.b, tile, walk.k, stage, lane);
    walk.next(p);
  }
  ptx::commit_copies();
}

// A warp's sums to shared memory.
template <class T>
__device__ __forceinline__ void store_partial(const float (&acc)[T::TM][T::TN], uint32_t sums, Lane lane) {
#pragma unroll
  for (int i = 0; i < T::TM; ++i)
#pragma unroll
    for (int j = 0; j < T::TN; j += 4)
      ptx::store4(sums + ((i * 8 + lane.row) * T::PITCH + lane.col * 4 + j * 4) * 4,
                  {acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]});
}

// The fours of a tile that a thread adds up.
template <class T>
struct Results {
  alignas(16) float of[T::EACH][4] = {};

  template <class Use>
  __device__ __forceinline__ static void each(int t, Use use) {
#pragma unroll
    for (int e = 0; e < T::EACH; ++e) {
      const int quad = t + e * T::THREADS;
      if (T::QUADS % T::THREADS == 0 || quad < T::QUADS) use(e, quad / (T::BN / 4), quad % (T::BN / 4) * 4);
    }
  }
  // C, from or to.
  template <bool READ>
  __device__ __forceinline__ void move(const SgemmArgs& p, const Corner& at, bool by16, int t) {
    each(t, [&](int e, int row, int col) {
      const int exist = row < at.rows ? at.cols - col : 0;
      float* const c = at.c + row * p.c.rs + col;
      READ ? move4(of[e], c, exist, by16) : move4(c, of[e], exist, by16);
    });
  }
  __device__ __forceinline__ void add(const BlockUpdate& update, uint32_t sums, int t) {
    each(t, [&](int e, int row, int col) {
      const float4 sum = ptx::load4(sums + (row * T::PITCH + col) * 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) of[e][j] = update(component(sum, j), of[e][j]);
    });
  }
};

template <class T>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    reproducible_warps_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ SharedTilePlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const int t = threadIdx.x, warp = t / 32, lane_id = t % 32;
  const uint32_t shared = ptx::shared_address(memory), pipeline = shared + warp * T::PIPELINE_BYTES;
  const uint32_t sums = shared + T::SUMS;
  const Tile tile = plan.grid.tile(blockIdx.x);
  const Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
  BlockWalk<T> to_copy(warp);
  pdl_wait();
  int into = 0, from = 0;
  auto copy_next = [&] {
    copy_stage<T>(p, plan, tile, to_copy, pipeline + into * T::STAGE_BYTES, lane_id);
    into = into + 1 == T::STAGES ? 0 : into + 1;
  };
#pragma unroll
  for (int s = 0; s < T::STAGES - 1; ++s) copy_next();
  Results<T> results;
  if (p.beta != 0.0f) results.template move<true>(p, at, plan.c_by16, t);
  int64_t first = 0;
#pragma unroll 1
  do {  // an empty sum too
    float acc[T::TM][T::TN] = {};
    const int64_t begin = first + warp * REPRODUCIBLE_BLOCK, end = min(p.k, begin + REPRODUCIBLE_BLOCK);
#pragma unroll 1
    for (int64_t k = begin; k < end; k += T::BK) {
      __syncwarp();  // all lanes have read the stage that is filled next
      copy_next();
      ptx::wait_copies<T::STAGES - 1>();
      __syncwarp();  // all lanes' copies have arrived
      multiply_ahead<T>(acc, pipeline + from * T::STAGE_BYTES, Lane(lane_id));
      from = from + 1 == T::STAGES ? 0 : from + 1;
    }
    store_partial<T>(acc, sums + warp * T::SUMS_BYTES, Lane(lane_id));
    __syncthreads();
#pragma unroll
    for (int w = 0; w < T::WARPS; ++w)
      if (w == 0 || first + w * REPRODUCIBLE_BLOCK < p.k)
        results.add(BlockUpdate(p, first == 0 && w == 0), sums + w * T::SUMS_BYTES, t);
    first += T::WARPS * REPRODUCIBLE_BLOCK;
    if (first < p.k) __syncthreads();  // all have read the sums
  } while (first < p.k);
  ptx::wait_copies<0>();
  pdl_launch_next();
  results.template move<false>(p, at, plan.c_by16, t);
#else
  not_for_this_target();
#endif
}

template <WarpTile TILE>
void reproducible_warps(const SgemmArgs& call, const Context& ctx) {
  using T = SharedTile<TILE>;
  const SgemmArgs p = with_empty_sum(call);
  const SharedTilePlan plan{in_whole_fours_of_k(operand(p.a, p.a.rs, p.a.cs), p.k), operand(p.b, p.b.rs, p.b.cs),
                            TileGrid(p.m, p.n, p.batch, T::BM, T::BN), aligned16(p.c)};
  launch_kernel<reproducible_warps_kernel<T>>({plan.grid.blocks(), T::THREADS, T::SHARED_BYTES}, ctx, p, plan);
}

}  // namespace

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { reproducible_warps<tile>(p, ctx); }
FL_REPRODUCIBLE_WARP_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
