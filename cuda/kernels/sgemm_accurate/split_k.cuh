// Split-K, for products of few tiles and a long k: each block takes a part of the k of a tile and leaves its sums in
// the workspace, and a second kernel adds those up in an order that depends on their number alone, scales them back and
// stores them. At 256 rows and columns there are but four tiles of 128x128 for all multiprocessors.
//
// The scales are those of whole lines, so sums of parts add up as they are. The float32 fallback for terms that are
// rejected cuts k at the same places and leaves its sums in the same memory, so that one reduction serves both.
#pragma once

#include "cuda/kernels/sgemm_accurate/launch.cuh"

namespace fl {

template <class S>
using SplitKTile = SingleTile<S, 2, 1, ACCURATE_SPLIT_K_TILE, S::COUNT == 2 ? 3 : 2, 1>;

struct SplitKPlan {
  ProductPlan product;
  SplitKSums to;
};

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1) split_k_kernel(const __grid_constant__ SplitKPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ RangeShared range;
  const Stages stages = begin_stages<T>(memory, range, 4 * T::M_GROUPS);
  ptx::touch(plan);
  __syncthreads();
  pdl_wait();
  if (!terms_wanted(plan.product.check)) return;
  // Blocks that run at a time read the same part of k of many tiles.
  const int tiles = plan.product.tile_rows * plan.product.tile_cols;
  const int tile = int(blockIdx.x) % tiles, part = int(blockIdx.x) / tiles;
  const WarpgroupWork<T> work(plan.product.k_blocks, part, plan.to.parts);
  if (threadIdx.x < 128) {
    if (threadIdx.x == 0) produce_part<T>(plan.product, tile, stages, work, range);
    return;
  }
  const unsigned status = check_range<T>(plan.product, stages, range, min(work.count, T::STAGES));
  if (status & STATUS_REJECTED) return;
  float acc[T::BN / 2] = {};
  multiply_part<T>(acc, stages, work, TruncationCompensation<typename T::S>(status));
  const TileCorner<int> corner = rasterize<T>(plan.product, tile, 0);
  float* const to = plan.to.sums + part * plan.to.apart;
#pragma unroll
  for (int i = 0; i < T::VECTORS; ++i) {
    const RowVector<T> at(corner, work, i);
    *reinterpret_cast<float4*>(to + at.row * plan.to.ld + at.col) = RowVector<T>::of(acc, i);
  }
#else
  not_for_this_target();
#endif
}

template <bool TA, bool TB>
__global__ void __launch_bounds__(FALLBACK_THREADS, SharedSums::RESIDENT)
    split_k_fallback_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, const unsigned* status, bool by16,
                            SplitKSums to) {
  extern __shared__ char fallback_memory[];
  pdl_wait();
  if (!(*status & STATUS_REJECTED)) return;
  const int64_t k_blocks = ceil_div(p.k, TERM_BLOCK);
  for (unsigned unit = blockIdx.x; unit < grid.total * to.parts; unit += gridDim.x) {
    const int64_t part = unit / grid.total, from = k_blocks * part / to.parts * TERM_BLOCK;
    SgemmArgs one = p;
    one.k = min(p.k, k_blocks * (part + 1) / to.parts * TERM_BLOCK) - from;
    one.a.data += from * p.a.cs, one.b.data += from * p.b.rs;
    one.c.data = to.sums + part * to.apart, one.c.rs = to.ld;
    one.alpha = 1.0f, one.beta = 0.0f;
    fallback_tile<TA, TB>(one, block_tile<FALLBACK_BM, FALLBACK_BM>(one, grid, unit % grid.total), by16,
                          *reinterpret_cast<FallbackTiles*>(fallback_memory));
  }
}

struct SplitKReduction {
  SplitKSums from;
  AccurateEpilogue out;
  bool c_by16;             // rows of C start at multiples of 16 bytes
  const unsigned* status;  // of the terms whose scales are in `out`
  bool of_fallback_too;  // whether there are sums in any case: those of the float32 fallback if the terms are rejected
};

// Four threads to four neighbours of a row: each takes every fourth part, and the first adds up what the others have.
constexpr int REDUCTION_DOWN = 4, REDUCTION_ACROSS = 64;

static __global__ void __launch_bounds__(REDUCTION_DOWN* REDUCTION_ACROSS)
    split_k_reduction_kernel(const __grid_constant__ SplitKReduction plan) {
  __shared__ float4 partial[REDUCTION_DOWN][REDUCTION_ACROSS];
  const AccurateEpilogue& out = plan.out;
  const unsigned across = threadIdx.x % REDUCTION_ACROSS, down = threadIdx.x / REDUCTION_ACROSS;
  const unsigned vectors = ceil_div(out.n, 4), vector = blockIdx.x * REDUCTION_ACROSS + across;
  const int row = int(vector / vectors), col = int(vector % vectors) * 4;
  const bool exists = row < out.m;
  pdl_wait();
  const unsigned status = *plan.status;
  const bool fallback = status & STATUS_REJECTED;
  if (status & STATUS_DONE || (fallback && !plan.of_fallback_too)) return;
  float4 sum{};
  const auto add = [&](const float4& x) { sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w; };
  if (exists) {
    const float* const from = plan.from.sums + row * plan.from.ld + col;
#pragma unroll 4
    for (int part = int(down); part < plan.from.parts; part += REDUCTION_DOWN)
      add(__ldcg(reinterpret_cast<const float4*>(from + part * plan.from.apart)));
  }
  partial[down][across] = sum;
  __syncthreads();
  if (down != 0 || !exists) return;
#pragma unroll
  for (int d = 1; d < REDUCTION_DOWN; ++d) add(partial[d][across]);

  const float4 old = out.beta == 0.0f ? float4{} : out.addend.four(row, col, out.n - col);
  const int e = fallback ? 0 : out.a_exponents[row];
  const auto result = [&](float x, int i, float before) {
    const int back = fallback || col + i >= out.n ? 0 : -e - out.b_exponents[col + i];
    x = (status & STATUS_WIDE ? scale_wide(x, back) : x * power_of_two(back)) * out.alpha;
    return out.beta == 0.0f ? x : fmaf(out.beta, before, x);
  };
  write_vector(out.c + row * out.ldc + col,
               {result(sum.x, 0, old.x), result(sum.y, 1, old.y), result(sum.z, 2, old.z), result(sum.w, 3, old.w)},
               plan.c_by16, out.n - col);
}

// The float32 fallback, over the same parts of k.
void launch_split_k_fallback(const SgemmArgs& p, const unsigned* status, const SplitKSums& to, const Context& ctx);

// What follows the kernel that leaves the sums of parts. `last`: these terms have no other fallback than float32.
inline void launch_split_k_sums(const SgemmArgs& p, const ProductOperands& at, const AccurateSplitK& split_k,
                                const unsigned* status, bool last, const Context& ctx) {
  const SplitKSums from{at.sums, split_k.count, split_k.ld, split_k.rows * split_k.ld};
  if (last) launch_split_k_fallback(p, status, from, ctx);
  const SplitKReduction sum{from, epilogue_of(p, at), aligned<4>(p.c.data, p.c.rs), status, last};
  const auto sums = static_cast<unsigned>(ceil_div(p.m * ceil_div(p.n, 4), REDUCTION_ACROSS));
  launch_kernel<split_k_reduction_kernel>({sums, REDUCTION_DOWN * REDUCTION_ACROSS}, ctx, sum);
}

template <class S>
void launch_split_k(const SgemmArgs& p, const ProductOperands& at, const AccurateSplitK& split_k,
                    const RangeBound& bound, const unsigned* previous, unsigned* status, bool last,
                    const Context& ctx) {
  using T = SplitKTile<S>;
  SplitKPlan plan{product_plan(p, at, bound, previous, status),
                  {at.sums, split_k.count, split_k.ld, split_k.rows * split_k.ld}};
  plan.product.tile_rows = int(split_k.rows / ACCURATE_SPLIT_K_TILE);
  plan.product.tile_cols = int(split_k.ld / ACCURATE_SPLIT_K_TILE);
  plan.product.band = 8;
  const auto blocks = static_cast<unsigned>(plan.product.tile_rows * plan.product.tile_cols * split_k.count);
  launch_kernel<split_k_kernel<T>>({blocks, T::THREADS, T::SHARED_BYTES}, ctx, plan);
  launch_split_k_sums(p, at, split_k, status, last, ctx);
}

}  // namespace fl
