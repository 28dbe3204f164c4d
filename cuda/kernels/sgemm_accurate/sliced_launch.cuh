// The launches of a sliced product: the split pass and the product. Each begins while the one before it ends.
#pragma once

#include "core/layout.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_single.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_strips.cuh"
#include "plan/splits.h"

namespace fl {

// Three bf16 slices, and what stands behind them. With `before`, the verdict on two fp16 slices, only if it refuses.
void launch_bf16x6(const SgemmArgs& p, const unsigned* before, unsigned* verdict, const Context& ctx);
// Float32 FMA where `verdict` refuses the slices, and always if it is null.
void launch_sliced_fallback(const SgemmArgs& p, const unsigned* verdict, const Context& ctx);

// One problem of a batch.
inline SgemmArgs problem_of(const SgemmArgs& p, int64_t i) {
  SgemmArgs one = p;
  one.batch = 1;
  one.a.data += i * p.a.bs, one.b.data += i * p.b.bs, one.c.data += i * p.c.bs;
  return one;
}

// Calls multiply(problem, context) for each problem of a batch, with what is kept of its operands.
template <class Multiply>
void for_each_problem(const SgemmArgs& p, const Context& ctx, Multiply&& multiply) {
  KeptSplits splits = ctx.splits ? *ctx.splits : KeptSplits{};
  Context one = ctx;
  one.splits = &splits;
  for (int64_t i = 0; i < p.batch; ++i) {
    multiply(problem_of(p, i), one);
    for (KeptSplit* const kept : {&splits.a, &splits.b}) {
      if (kept->apart) kept->memory += kept->apart;
      else kept->ready = kept->memory != nullptr;  // the first problem has made it for all
    }
  }
}

// The split of an operand of one product: in the workspace, or where it is kept.
struct SplitPlace {
  int64_t groups;
  unsigned* words;
  int* exponents;
  char* slices;
  bool ready;

  SplitPlace(const SplitLayout& layout, char* memory, int64_t lines, int64_t first = 0, bool is_ready = false)
      : groups(ceil_div(lines, SPLIT_LINES)),
        words(reinterpret_cast<unsigned*>(memory) + first / SPLIT_LINES),
        exponents(reinterpret_cast<int*>(memory + layout.exponents) + first),
        slices(memory + layout.slices + std::size_t(first / SLICE_BLOCK) * layout.strip_bytes),
        ready(is_ready) {}
};

struct SlicedOperands {
  int64_t k_blocks, b_tile;
  SplitPlace a, b;
  unsigned* verdicts;
  StripRecord* records;
  float* sums;

  SlicedOperands(const SgemmArgs& p, const SlicedPlan& plan, Slices kind, const Context& ctx)
      : k_blocks(plan.k_blocks),
        b_tile(plan.b.tile),
        a(place(p.m, p.k, kind, plan.a, ctx, plan.a_begin, ctx.splits ? &ctx.splits->a : nullptr)),
        b(place(p.n, p.k, kind, plan.b, ctx, plan.b_begin, ctx.splits ? &ctx.splits->b : nullptr)),
        verdicts(static_cast<unsigned*>(ctx.workspace)),
        records(reinterpret_cast<StripRecord*>(static_cast<char*>(ctx.workspace) + plan.strips_begin)),
        sums(reinterpret_cast<float*>(static_cast<char*>(ctx.workspace) + plan.sums_begin)) {}

 private:
  static SplitPlace place(int64_t lines, int64_t k, Slices kind, const SplitLayout& own, const Context& ctx,
                          std::size_t begin, const KeptSplit* kept) {
    if (!kept || !kept->memory) return {own, static_cast<char*>(ctx.workspace) + begin, lines};
    const SplitLayout layout = kept->shared ? SplitLayout(kept->lines, k, kind) : own;
    return {layout, kept->memory, lines, kept->first, kept->ready};
  }
};

// One launch for what is not there. Behind other slices it is of few blocks, which have little to do if not needed.
template <class S>
void launch_split(const SgemmArgs& p, const SlicedOperands& at, const SlicedBound& bound, const unsigned* before,
                  const Context& ctx) {
  const int64_t lda = ld(p.a), ldb = ld(p.b);
  const int64_t a_groups = at.a.ready ? 0 : at.a.groups, b_groups = at.b.ready ? 0 : at.b.groups;
  if (a_groups + b_groups == 0) return;
  const SplitPlan split{
      {p.a.data, lda, p.m, p.a.cs == 1, aligned<4>(p.a.data, lda), at.a.words, at.a.slices, at.a.exponents},
      {p.b.data, ldb, p.n, p.b.cs != 1, aligned<4>(p.b.data, ldb), at.b.words, at.b.slices, at.b.exponents},
      p.k,
      at.k_blocks,
      static_cast<unsigned>(a_groups),
      static_cast<unsigned>(a_groups + b_groups),
      static_cast<unsigned>(at.b_tile / SPLIT_LINES),
      bound.small,
      bound.large,
      double(p.m) * double(p.n) <= 0x1p20,
      before};
  const unsigned few = 2 * static_cast<unsigned>(ctx.sm_count);
  const unsigned blocks = before && split.groups > few ? few : split.groups;
  const auto launch_all = [&](auto packed) {
    constexpr bool PACKED = decltype(packed)::value;
    if (const int strips = split_strips(split.groups, p.k); strips > 1) {
      const SplitStrips cut{split, unsigned(strips), at.records, at.records + STRIP_BLOCKS};
      const LaunchShape all{split.groups * cut.strips, LongSplit::THREADS};
      launch_kernel<split_strips_kernel<S, LongSplit, 2, PACKED>>(all, ctx, cut);
      return launch_kernel<settle_strips_kernel<S, LongSplit, 2, PACKED>>(all, ctx, cut);
    }
    if (p.k > SlicedBound::ONE_PIECE)
      return launch_kernel<sliced_split_kernel<S, true, LongSplit, 2, PACKED>>({blocks, LongSplit::THREADS}, ctx,
                                                                               split);
    if constexpr (S::COUNT == 3)
      if (2 * split.groups <= 3 * static_cast<unsigned>(ctx.sm_count))
        return launch_kernel<sliced_split_kernel<S, false, WideSplit, 1, PACKED>>({blocks, WideSplit::THREADS}, ctx,
                                                                                  split);
    launch_kernel<sliced_split_kernel<S, false, ShortSplit, 2, PACKED>>({blocks, ShortSplit::THREADS}, ctx, split);
  };
  if constexpr (S::COUNT == 2)
    if (at.b_tile != SLICE_BLOCK) return launch_all(std::true_type{});
  launch_all(std::false_type{});
}

// Boxes of 16 x 32 floats; false if the driver cannot be asked or they do not fit C.
inline bool box_map(CUtensorMap& map, const SgemmArgs& p) {
  const auto encode = tensor_map_encoder();
  const cuuint64_t extent[2] = {cuuint64_t(p.n), cuuint64_t(p.m)}, stride[1] = {cuuint64_t(p.c.rs) * sizeof(float)};
  const cuuint32_t box[2] = {32, 16}, step[2] = {1, 1};
  return encode && sliced_stored_by_boxes(p) &&
         encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, p.c.data, extent, stride, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// How many clusters run at a time. The answer of the last device is kept: it takes longer to ask than to launch.
template <class T, class Kernel>
int resident_clusters(Kernel kernel, int sm_count) {
  if (T::CLUSTER == 1) return sm_count;
  static std::atomic<uint64_t> known{0};  // multiprocessors, clusters
  const uint64_t last = known.load(std::memory_order_relaxed);
  if (last >> 32 == uint64_t(sm_count)) return int(last);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = T::CLUSTER, cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(sm_count / T::CLUSTER * T::CLUSTER));
  config.blockDim = dim3(T::THREADS);
  config.dynamicSmemBytes = T::SHARED_BYTES;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess || clusters < 1) {
    static_cast<void>(cudaGetLastError());  // whether clusters fit is for the launch to say
    return sm_count / T::CLUSTER;
  }
  known.store(uint64_t(sm_count) << 32 | uint64_t(clusters), std::memory_order_relaxed);
  return clusters;
}

template <class T, WayOut WAY>
void launch_tiles(ProductPlan plan, const CUtensorMap& map, const Context& ctx) {
  constexpr auto kernel = sliced_product_kernel<T, WAY>;
  bool for_sm90 = false;  // before it is asked how many clusters run at a time
  if (prepare_kernel<kernel>(for_sm90, T::SHARED_BYTES) != cudaSuccess) return;
  plan.tile_rows = int(ceil_div(plan.out.m, T::BM));
  plan.tile_cols = int(ceil_div(plan.out.n, T::BN * T::CLUSTER));
  plan.band = plan.out.n >= 8192 && plan.k_blocks <= 32 ? 11 : 8;
  const int64_t tiles = int64_t{plan.tile_rows} * plan.tile_cols, clusters = resident_clusters<T>(kernel, ctx.sm_count);
  const auto blocks = static_cast<unsigned>((tiles < clusters ? tiles : clusters) * T::CLUSTER);
  launch_kernel<kernel>({blocks, T::THREADS, T::SHARED_BYTES, T::CLUSTER}, ctx, plan, map);
}

inline Guard guard_of(const SgemmArgs& p, const SlicedOperands& at, const SlicedBound& bound, const unsigned* before,
                      unsigned* verdict) {
  return {at.a.words,    at.b.words,       int(at.a.groups), int(at.a.groups + at.b.groups),
          unsigned(p.k), bound.both_large, verdict,          before};
}

inline Epilogue epilogue_of(const SgemmArgs& p, const SlicedOperands& at) {
  return {at.a.exponents, at.b.exponents, p.c.data,
          p.c.rs,         int(p.m),       int(p.n),
          p.alpha,        p.beta,         p.m * p.n <= int64_t{1} << 22};
}

inline ProductPlan product_plan(const SgemmArgs& p, const SlicedOperands& at, const SlicedBound& bound,
                                const unsigned* before, unsigned* verdict) {
  return {at.a.slices,       at.b.slices, int(at.k_blocks), 0, 0, 0, guard_of(p, at, bound, before, verdict),
          epilogue_of(p, at)};
}

template <class T>
void launch_product(const SgemmArgs& p, const SlicedOperands& at, const SlicedBound& bound, const unsigned* before,
                    unsigned* verdict, const Context& ctx) {
  const ProductPlan product = product_plan(p, at, bound, before, verdict);
  CUtensorMap map{};
  if (!box_map(map, p)) launch_tiles<T, WayOut::rows>(product, map, ctx);
  else if (p.beta != 0.0f) launch_tiles<T, WayOut::blend>(product, map, ctx);
  else launch_tiles<T, WayOut::boxes>(product, map, ctx);
}

// One tile for each cluster. `falls_back`: with the plain kernel inside, for slices that are refused. Returns that.
template <class T>
bool launch_single(const SgemmArgs& p, const SlicedOperands& at, const SlicedBound& bound, const unsigned* before,
                   unsigned* verdict, bool falls_back, const Context& ctx) {
  SinglePlan single{product_plan(p, at, bound, before, verdict),
                    aligned<4>(p.c.data, p.c.rs),
                    falls_back,
                    aligned<4>(p.a.data, ld(p.a)) && aligned<4>(p.b.data, ld(p.b)),
                    p,
                    TileGrid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM)};
  single.product.tile_rows = int(ceil_div(p.m, T::BM));
  single.product.tile_cols = int(ceil_div(p.n, T::BN));
  single.product.band = 8;
  const auto blocks = static_cast<unsigned>(single.product.tile_rows * single.product.tile_cols * T::BLOCKS);
  by_order(p, [&](auto TA, auto TB) {
    launch_kernel<sliced_single_kernel<T, TA, TB>>({blocks, T::THREADS, T::SHARED_BYTES, T::BLOCKS}, ctx, single);
  });
  return falls_back;
}

}  // namespace fl
