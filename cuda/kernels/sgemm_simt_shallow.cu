// Strict SGEMM with a short k, where writing C is most of the work: C goes out in whole rows of a tile, 32 neighbouring
// floats to a store, whatever its alignment.
//
//   tile      threads   thread tile   blocks on a multiprocessor
//   32 x 64     128        8 x 2                8               where there are few tiles
//   64 x 128    256        8 x 4                4
//
// A warp owns 8 rows. Its lanes stand side by side along n and hold every 32nd column: reads of B hit 32 banks, and one
// read of A serves all lanes. k comes in steps of 32 with nothing under way meanwhile; other blocks fill the wait.
// Ascending k, one chain of FMAs for each output.
#include "cluster_launch.cuh"
#include "simt_copy.cuh"
#include "simt_rules.h"

namespace fl {
namespace {

template <int COLUMNS, int COUNT>
struct ShallowTile {
  static constexpr int TM = 8, TN = COLUMNS, WARPS = COUNT, THREADS = 32 * WARPS, BM = TM * WARPS, BN = 32 * TN;
  static constexpr int BK = 32;
  using CopyA = TileCopy<BK, BM, THREADS, Tail::none>;
  using CopyB = TileCopy<BK, BN, THREADS, Tail::none>;
  static constexpr int SHARED = CopyA::BYTES + CopyB::BYTES;
};

struct ShallowPlan {
  Operand a, b;
  TileGrid grid;
};

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1024 / T::THREADS)
    simt_shallow_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ ShallowPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t a_tile = ptx::shared_address(memory), b_tile = a_tile + T::CopyA::BYTES;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const Tile tile = plan.grid.tile(blockIdx.x);
  const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
  typename T::CopyA a(plan.a, first_of(plan.a, tile.batch, 0, row), minus_zeros, t);
  typename T::CopyB b(plan.b, first_of(plan.b, tile.batch, 0, col), plus_zeros, t);
  a.length = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  ptx::grid_wait();
  float acc[T::TM][T::TN] = {};
#pragma unroll 1
  for (int64_t k = 0; k < p.k; k += T::BK) {
    a.lines = b.lines = k_left(p.k - k, T::BK);
    a(a_tile);
    b(b_tile);
    ptx::commit_copies();
    ptx::wait_copies<0>();
    __syncthreads();
#pragma unroll 2
    for (int l = 0; l < a.lines; ++l) {
      float a_frag[T::TM], b_frag[T::TN];
#pragma unroll
      for (int i = 0; i < T::TM; i += 4) {
        const float4 v = ptx::load4(a_tile + (l * T::CopyA::LD + warp * T::TM + i) * 4);
        a_frag[i] = v.x, a_frag[i + 1] = v.y, a_frag[i + 2] = v.z, a_frag[i + 3] = v.w;
      }
#pragma unroll
      for (int j = 0; j < T::TN; ++j) b_frag[j] = ptx::load1(b_tile + (l * T::CopyB::LD + lane + 32 * j) * 4);
      outer_product(acc, a_frag, b_frag);
    }
    a.next_lines();
    b.next_lines();
    __syncthreads();  // the tiles are read: the next ones may come
  }
#pragma unroll
  for (int i = 0; i < T::TM; ++i)
#pragma unroll
    for (int j = 0; j < T::TN; ++j)
      if (warp * T::TM + i < a.length && lane + 32 * j < b.length)
        store(p, tile.batch, row + warp * T::TM + i, col + lane + 32 * j, acc[i][j]);
#endif
}

template <class T>
void launch(const SgemmArgs& p, const Context& ctx) {
  static std::atomic<uint64_t> raised{0};
  const ShallowPlan plan{operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs),
                         TileGrid(p.m, p.n, p.batch, T::BM, T::BN)};
  launch_overlapping(simt_shallow_kernel<T>, {plan.grid.blocks(), T::THREADS, T::SHARED}, stream(ctx), raised, p, plan);
}

}  // namespace

void sgemm_simt_shallow(const SgemmArgs& p, const Context& ctx) {
  if (shallow_is_large(p)) return launch<ShallowTile<4, 8>>(p, ctx);
  launch<ShallowTile<2, 4>>(p, ctx);
}

}  // namespace fl
