// Products of few tiles and a long k: each block takes a range of the k of a tile and leaves its sums in the workspace,
// and a second kernel adds those up in an order that depends on their number alone, scales them back and stores them.
// At 256 rows and columns there are four tiles of 128x128 for 132 multiprocessors.
//
// The scales are those of whole lines, so sums of ranges add up as they are. What stands by for refused slices cuts k
// at the same places and leaves its sums in the same room, so nothing is added twice.
#pragma once

#include "cuda/kernels/sgemm_accurate/sliced_launch.cuh"

namespace fl {

template <class S>
using RangeTile = SingleTile<S, 2, 1, RANGE_TILE, S::COUNT == 2 ? 3 : 2, 1>;

// Ranges of k of a product: where the sums of each go, in rows of `ld`, `apart` from range to range.
struct RangeSums {
  float* sums;
  int ranges;
  int64_t ld, apart;
};
struct RangesPlan {
  ProductPlan product;
  RangeSums to;
};

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1) sliced_ranges_kernel(const __grid_constant__ RangesPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ VerdictShared guard;
  const Stages stages = begin_stages<T>(memory, guard);
  ptx::touch(plan);
  __syncthreads();
  pdl_wait();
  if (!wanted(plan.product.guard)) return;
  // Blocks that run at a time read the same range of many tiles.
  const int tiles = plan.product.tile_rows * plan.product.tile_cols;
  const int tile = int(blockIdx.x) % tiles, range = int(blockIdx.x) / tiles;
  const PartShare<T> share(plan.product.k_blocks, range, plan.to.ranges);
  if (threadIdx.x < 128) {
    if (threadIdx.x == 0) fill_share<T>(plan.product, tile, stages, share, guard);
    return;
  }
  const unsigned verdict = decide<T>(plan.product, stages, guard, min(share.count, T::STAGES));
  if (verdict & VERDICT_REFUSED) return;
  float acc[T::BN / 2] = {};
  multiply_share<T>(acc, stages, share, GivenBack<typename T::S>(verdict));
  const ProductCorner corner = corner_of<T>(plan.product, tile, 0);
  float* const to = plan.to.sums + range * plan.to.apart;
#pragma unroll
  for (int i = 0; i < T::QUADS; ++i) {
    const Quad<T> at(corner, share, i);
    *reinterpret_cast<float4*>(to + at.row * plan.to.ld + at.col) = Quad<T>::of(acc, i);
  }
#else
  not_for_this_target();
#endif
}

template <bool TA, bool TB>
__global__ void __launch_bounds__(FALLBACK_THREADS, 2)
    fallback_ranges_kernel(const __grid_constant__ SgemmArgs p, TileGrid grid, const unsigned* verdict, bool by16,
                           RangeSums to) {
  extern __shared__ char fallback_memory[];
  pdl_wait();
  if (!(*verdict & VERDICT_REFUSED)) return;
  const int64_t k_blocks = ceil_div(p.k, SLICE_BLOCK);
  for (unsigned unit = blockIdx.x; unit < grid.total * to.ranges; unit += gridDim.x) {
    const int64_t range = unit / grid.total, from = k_blocks * range / to.ranges * SLICE_BLOCK;
    SgemmArgs part = p;
    part.k = min(p.k, k_blocks * (range + 1) / to.ranges * SLICE_BLOCK) - from;
    part.a.data += from * p.a.cs, part.b.data += from * p.b.rs;
    part.c.data = to.sums + range * to.apart, part.c.rs = to.ld;
    part.alpha = 1.0f, part.beta = 0.0f;
    fallback_tile<TA, TB>(part, block_tile<FALLBACK_BM, FALLBACK_BM>(part, grid, unit % grid.total), by16,
                          *reinterpret_cast<FallbackShared*>(fallback_memory));
  }
}

struct RangesSum {
  RangeSums from;
  Epilogue out;
  bool vectors;             // rows of C start at multiples of 16 bytes
  const unsigned* verdict;  // on the slices whose scales are in `out`
  bool refused_too;         // whether there are sums in any case: plain ones if these slices were refused
};

// Four threads to four neighbours of a row: each takes every fourth range, and the first adds up what the others have.
constexpr int RANGES_DOWN = 4, RANGES_ACROSS = 64;

static __global__ void __launch_bounds__(RANGES_DOWN* RANGES_ACROSS)
    sum_ranges_kernel(const __grid_constant__ RangesSum plan) {
  __shared__ float4 partial[RANGES_DOWN][RANGES_ACROSS];
  const Epilogue& out = plan.out;
  const unsigned across = threadIdx.x % RANGES_ACROSS, down = threadIdx.x / RANGES_ACROSS;
  const unsigned quads = ceil_div(out.n, 4), quad = blockIdx.x * RANGES_ACROSS + across;
  const int row = int(quad / quads), col = int(quad % quads) * 4;
  const bool exists = row < out.m;
  pdl_wait();
  const unsigned verdict = *plan.verdict;
  const bool plain = verdict & VERDICT_REFUSED;
  if (verdict & VERDICT_DONE || (plain && !plan.refused_too)) return;
  float4 sum{};
  const auto add = [&](const float4& x) { sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w; };
  if (exists) {
    const float* const from = plan.from.sums + row * plan.from.ld + col;
#pragma unroll 4
    for (int range = int(down); range < plan.from.ranges; range += RANGES_DOWN)
      add(__ldcg(reinterpret_cast<const float4*>(from + range * plan.from.apart)));
  }
  partial[down][across] = sum;
  __syncthreads();
  if (down != 0 || !exists) return;
#pragma unroll
  for (int d = 1; d < RANGES_DOWN; ++d) add(partial[d][across]);

  float* const c = out.c + row * out.ldc + col;
  const float4 old = out.beta == 0.0f ? float4{} : read_quad(c, plan.vectors, out.n - col);
  const int e = plain ? 0 : out.a_exponents[row];
  const auto result = [&](float x, int i, float before) {
    const int back = plain || col + i >= out.n ? 0 : -e - out.b_exponents[col + i];
    x = (verdict & VERDICT_WIDE ? scale_wide(x, back) : x * power_of_two(back)) * out.alpha;
    return out.beta == 0.0f ? x : fmaf(out.beta, before, x);
  };
  write_quad(c, {result(sum.x, 0, old.x), result(sum.y, 1, old.y), result(sum.z, 2, old.z), result(sum.w, 3, old.w)},
             plan.vectors, out.n - col);
}

// The stand-in for refused slices, over the same ranges.
void launch_fallback_ranges(const SgemmArgs& p, const unsigned* verdict, const RangeSums& to, const Context& ctx);

// `last`: nothing else stands by for these slices but the plain kernel.
template <class S>
void launch_ranges(const SgemmArgs& p, const SlicedOperands& at, const SlicedRanges& ranges, const SlicedBound& bound,
                   const unsigned* before, unsigned* verdict, bool last, const Context& ctx) {
  using T = RangeTile<S>;
  RangesPlan plan{product_plan(p, at, bound, before, verdict),
                  {at.sums, ranges.count, ranges.ld, ranges.rows * ranges.ld}};
  plan.product.tile_rows = int(ranges.rows / RANGE_TILE);
  plan.product.tile_cols = int(ranges.ld / RANGE_TILE);
  plan.product.band = 8;
  const auto blocks = static_cast<unsigned>(plan.product.tile_rows * plan.product.tile_cols * ranges.count);
  launch_kernel<sliced_ranges_kernel<T>>({blocks, T::THREADS, T::SHARED_BYTES}, ctx, plan);
  if (last) launch_fallback_ranges(p, verdict, plan.to, ctx);
  const RangesSum sum{plan.to, plan.product.out, aligned<4>(p.c.data, p.c.rs), verdict, last};
  const auto sums = static_cast<unsigned>(ceil_div(p.m * ceil_div(p.n, 4), RANGES_ACROSS));
  launch_kernel<sum_ranges_kernel>({sums, RANGES_DOWN * RANGES_ACROSS}, ctx, sum);
}

}  // namespace fl
