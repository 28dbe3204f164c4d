// The launches of a sliced product: the split pass and the product. Each begins while the one before it ends.
#pragma once

#include <cudaTypedefs.h>

#include "cluster_launch.cuh"
#include "sliced_single.cuh"

namespace fl {

// Three bf16 slices, and what stands behind them. With `before`, the verdict on two fp16 slices, only if that refuses them.
void launch_bf16x6(const SgemmArgs& p, const unsigned* before, unsigned* verdict, const Context& ctx);
// Float32 FMA where `verdict` refuses the slices, and always if it is null.
void launch_sliced_fallback(const SgemmArgs& p, const unsigned* verdict, const Context& ctx);

inline bool by16(const void* data, int64_t ld) { return reinterpret_cast<uintptr_t>(data) % 16 == 0 && ld % 4 == 0; }
inline int64_t line_stride(const ConstMatrix& x) { return x.cs == 1 ? x.rs : x.cs; }

// One problem of a batch.
inline SgemmArgs problem_of(const SgemmArgs& p, int64_t i) {
  SgemmArgs one = p;
  one.batch = 1;
  one.a.data += i * p.a.bs, one.b.data += i * p.b.bs, one.c.data += i * p.c.bs;
  return one;
}

// One launch for both operands. Behind other slices it is of few blocks, which have little to do if they are not needed.
template <class S>
void launch_split(const SgemmArgs& p, const SlicedPlan& plan, const SlicedBound& bound, const unsigned* before,
                  const Context& ctx) {
  static PerDevice known;
  char* const memory = static_cast<char*>(ctx.workspace);
  const int64_t lda = line_stride(p.a), ldb = line_stride(p.b);
  const SplitPlan split{{p.a.data, lda, p.m, p.a.cs == 1, by16(p.a.data, lda), memory + plan.a_slices,
                         reinterpret_cast<int*>(memory + plan.a_exponents)},
                        {p.b.data, ldb, p.n, p.b.cs != 1, by16(p.b.data, ldb), memory + plan.b_slices,
                         reinterpret_cast<int*>(memory + plan.b_exponents)},
                        p.k,
                        plan.k_blocks,
                        static_cast<unsigned>(plan.a_groups),
                        static_cast<unsigned>(plan.a_groups + plan.b_groups),
                        static_cast<unsigned>(plan.b_tile / SPLIT_LINES),
                        bound.small,
                        bound.large,
                        reinterpret_cast<unsigned*>(memory + plan.guard),
                        double(p.m) * double(p.n) <= 0x1p20,
                        before};
  const unsigned few = 2 * static_cast<unsigned>(ctx.sm_count);
  const unsigned blocks = before && split.groups > few ? few : split.groups;
  if (p.k > SlicedBound::ONE_PIECE)
    launch_overlapping(sliced_split_kernel<S, true, LongSplit, 2>, GridShape{blocks, LongSplit::THREADS}, ctx, known,
                       split);
  else
    launch_overlapping(sliced_split_kernel<S, false, ShortSplit, 2>, GridShape{blocks, ShortSplit::THREADS}, ctx, known,
                       split);
}

// Boxes of 16 x 32 floats; false if the driver cannot be asked or they do not fit C.
inline bool box_map(CUtensorMap& map, const SgemmArgs& p) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error == cudaSuccess) return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
    static_cast<void>(cudaGetLastError());  // the answer, not an error of the call
    return PFN_cuTensorMapEncodeTiled_v12000{};
  }();
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
  static std::atomic<uint64_t> raised{0};
  const auto kernel = sliced_product_kernel<T, WAY>;
  if (raise_shared_limit(reinterpret_cast<const void*>(kernel), T::SHARED_BYTES, raised) != cudaSuccess) return;
  plan.tile_rows = int(ceil_div(plan.out.m, T::BM));
  plan.tile_cols = int(ceil_div(plan.out.n, T::BN * T::CLUSTER));
  plan.band = plan.out.n >= 8192 && plan.k_blocks <= 32 ? 11 : 8;
  const int64_t tiles = int64_t{plan.tile_rows} * plan.tile_cols, clusters = resident_clusters<T>(kernel, ctx.sm_count);
  const auto blocks = static_cast<unsigned>((tiles < clusters ? tiles : clusters) * T::CLUSTER);
  launch_overlapping(kernel, {blocks, unsigned(T::THREADS), T::SHARED_BYTES, unsigned(T::CLUSTER)}, stream(ctx), raised,
                     plan, map);
}

inline ProductPlan product_plan(const SgemmArgs& p, const SlicedPlan& plan, const SlicedBound& bound,
                                const unsigned* before, unsigned* verdict, const Context& ctx) {
  char* const memory = static_cast<char*>(ctx.workspace);
  return {
      memory + plan.a_slices,
      memory + plan.b_slices,
      int(plan.k_blocks),
      0,
      0,
      0,
      {reinterpret_cast<const unsigned*>(memory + plan.guard), int(plan.a_groups), int(plan.a_groups + plan.b_groups),
       unsigned(p.k), bound.both_large, verdict, before},
      {reinterpret_cast<const int*>(memory + plan.a_exponents), reinterpret_cast<const int*>(memory + plan.b_exponents),
       p.c.data, p.c.rs, int(p.m), int(p.n), p.alpha, p.beta}};
}

template <class T>
void launch_product(const SgemmArgs& p, const SlicedPlan& plan, const SlicedBound& bound, const unsigned* before,
                    unsigned* verdict, const Context& ctx) {
  const ProductPlan product = product_plan(p, plan, bound, before, verdict, ctx);
  CUtensorMap map{};
  if (!box_map(map, p)) launch_tiles<T, WayOut::rows>(product, map, ctx);
  else if (p.beta != 0.0f) launch_tiles<T, WayOut::blend>(product, map, ctx);
  else launch_tiles<T, WayOut::boxes>(product, map, ctx);
}

// One tile for each cluster. `falls_back`: with the plain kernel inside, for slices that are refused. Returns that.
template <class T>
bool launch_single(const SgemmArgs& p, const SlicedPlan& plan, const SlicedBound& bound, const unsigned* before,
                   unsigned* verdict, bool falls_back, const Context& ctx) {
  SinglePlan single{product_plan(p, plan, bound, before, verdict, ctx),
                    by16(p.c.data, p.c.rs),
                    falls_back,
                    by16(p.a.data, line_stride(p.a)) && by16(p.b.data, line_stride(p.b)),
                    p,
                    TileGrid(p.m, p.n, 1, FALLBACK_BM, FALLBACK_BM)};
  single.product.tile_rows = int(ceil_div(p.m, T::BM));
  single.product.tile_cols = int(ceil_div(p.n, T::BN));
  single.product.band = 8;
  const auto blocks = static_cast<unsigned>(single.product.tile_rows * single.product.tile_cols * T::BLOCKS);
  by_order(p, [&](auto TA, auto TB) {
    static std::atomic<uint64_t> raised{0};
    launch_overlapping(sliced_single_kernel<T, TA, TB>, {blocks, T::THREADS, T::SHARED_BYTES, T::BLOCKS}, stream(ctx),
                       raised, single);
  });
  return falls_back;
}

}  // namespace fl
