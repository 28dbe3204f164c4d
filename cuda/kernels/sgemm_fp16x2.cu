// Float32 accuracy at the speed of the tensor cores: each operand as the sum of two fp16 slices, three products.
//
// Three launches, each of which starts while the one before ends: the split pass, the product, and a strict kernel that
// runs only if the split pass found numbers that two slices cannot hold (docs/accuracy.md). Calls with a small k, and those
// with an alpha that is NaN or infinite, run the strict kernel alone.
// A batch is a loop: the problems that come here are large enough, and the workspace stays that of one problem.
#include <cudaTypedefs.h>

#include <cmath>

#include "cluster_launch.cuh"
#include "fp16x2_fallback.cuh"
#include "fp16x2_product.cuh"

namespace fl {
namespace {

using Tall = ProductTile<2, 128, 2, 2, 2>;
using Middle = ProductTile<1, 128, 3, 2, 1>;
using Small = ProductTile<1, 64, 2, 4, 1>;

bool by16(const void* data, int64_t ld) { return reinterpret_cast<uintptr_t>(data) % 16 == 0 && ld % 4 == 0; }

int64_t line_stride(const ConstMatrix& x) { return x.cs == 1 ? x.rs : x.cs; }

void launch_fallback(const SgemmArgs& p, const unsigned* verdict, const Context& ctx) {
  const TileGrid grid(p.m, p.n, p.batch, FALLBACK_BM, FALLBACK_BM);
  const bool aligned =
      by16(p.a.data, line_stride(p.a)) && by16(p.b.data, line_stride(p.b)) && (p.a.bs | p.b.bs) % 4 == 0;
  const unsigned full = 2 * static_cast<unsigned>(ctx.sm_count), blocks = grid.blocks() < full ? grid.blocks() : full;
  by_order(p, [&](auto TA, auto TB) {
    static std::atomic<uint64_t> raised{0};
    launch_overlapping(fp16x2_fallback_kernel<TA, TB>, {blocks, FALLBACK_THREADS, FALLBACK_SHARED}, stream(ctx), raised,
                       p, grid, verdict, aligned);
  });
}

// One launch for both operands.
void launch_split(const SgemmArgs& p, const Fp16x2Plan& plan, char* memory, unsigned* guard, float small, float large,
                  const Context& ctx) {
  static std::atomic<uint64_t> raised{~uint64_t{0}};  // it needs no more shared memory than any kernel gets
  const int64_t lda = line_stride(p.a), ldb = line_stride(p.b);
  const SplitPlan split{{p.a.data, lda, p.m, p.a.cs == 1, by16(p.a.data, lda), memory + plan.a_slices,
                         reinterpret_cast<int*>(memory + plan.a_exponents)},
                        {p.b.data, ldb, p.n, p.b.cs != 1, by16(p.b.data, ldb), memory + plan.b_slices,
                         reinterpret_cast<int*>(memory + plan.b_exponents)},
                        p.k,
                        plan.k_blocks,
                        static_cast<unsigned>(plan.a_strips * FP16X2_CLUSTER),
                        small,
                        large,
                        guard};
  const auto blocks = static_cast<unsigned>((plan.a_strips + plan.b_strips) * FP16X2_CLUSTER);
  launch_overlapping(p.k > 1024 ? fp16x2_split_kernel<true> : fp16x2_split_kernel<false>,
                     {blocks, SPLIT_THREADS, 0, FP16X2_CLUSTER}, stream(ctx), raised, split);
}

// Boxes of 16 x 32 floats; false if the driver cannot be asked or they do not fit C.
bool box_map(CUtensorMap& map, const SgemmArgs& p) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    return error == cudaSuccess ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function) : nullptr;
  }();
  const cuuint64_t extent[2] = {cuuint64_t(p.n), cuuint64_t(p.m)}, stride[1] = {cuuint64_t(p.c.rs) * sizeof(float)};
  const cuuint32_t box[2] = {32, 16}, step[2] = {1, 1};
  return encode && fp16x2_stored_by_boxes(p) &&
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
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess || clusters < 1)
    return sm_count / T::CLUSTER;
  known.store(uint64_t(sm_count) << 32 | uint64_t(clusters), std::memory_order_relaxed);
  return clusters;
}

template <class T, bool BOXES>
void launch_product(ProductPlan plan, const CUtensorMap& map, const Context& ctx) {
  static std::atomic<uint64_t> raised{0};
  const auto kernel = fp16x2_product_kernel<T, BOXES>;
  if (raise_shared_limit(reinterpret_cast<const void*>(kernel), T::SHARED_BYTES, raised) != cudaSuccess) return;
  plan.tile_rows = int(ceil_div(plan.out.m, T::BM));
  plan.tile_cols = int(ceil_div(plan.out.n, T::BN * T::CLUSTER));
  plan.band = plan.out.n >= 8192 && plan.k_blocks <= 32 ? 11 : 8;
  const int64_t tiles = int64_t{plan.tile_rows} * plan.tile_cols, clusters = resident_clusters<T>(kernel, ctx.sm_count);
  const auto blocks = static_cast<unsigned>((tiles < clusters ? tiles : clusters) * T::CLUSTER);
  launch_overlapping(kernel, {blocks, unsigned(T::THREADS), T::SHARED_BYTES, unsigned(T::CLUSTER)}, stream(ctx), raised,
                     plan, map);
}

template <bool BOXES>
void launch_tiled(Fp16x2Tile tile, const ProductPlan& plan, const CUtensorMap& map, const Context& ctx) {
  switch (tile) {
    case Fp16x2Tile::tall_256x128: return launch_product<Tall, BOXES>(plan, map, ctx);
    case Fp16x2Tile::middle_192x128: return launch_product<Middle, BOXES>(plan, map, ctx);
    case Fp16x2Tile::small_128x64: return launch_product<Small, BOXES>(plan, map, ctx);
  }
}

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const Fp16x2Plan plan(p);
  char* const memory = static_cast<char*>(ctx.workspace);
  auto* const guard = reinterpret_cast<unsigned*>(memory + plan.guard);
  auto* const verdict = reinterpret_cast<unsigned*>(memory + plan.verdict);
  const Fp16x2Bound bound(p.k);
  launch_split(p, plan, memory, guard, bound.small, bound.large, ctx);
  const ProductPlan product{
      memory + plan.a_slices,
      memory + plan.b_slices,
      int(plan.k_blocks),
      0,
      0,
      0,
      {reinterpret_cast<const uint4*>(guard), int(2 * plan.a_strips), int(2 * (plan.a_strips + plan.b_strips)),
       unsigned(p.k), bound.both_large, verdict},
      {reinterpret_cast<const int*>(memory + plan.a_exponents), reinterpret_cast<const int*>(memory + plan.b_exponents),
       p.c.data, p.c.rs, int(p.m), int(p.n), p.alpha, p.beta}};
  const Fp16x2Tile tile = fp16x2_choice(p.m, p.n, ctx.sm_count).tile;
  CUtensorMap map{};
  if (box_map(map, p)) launch_tiled<true>(tile, product, map, ctx);
  else launch_tiled<false>(tile, product, map, ctx);
  launch_fallback(p, verdict, ctx);
}

}  // namespace

void sgemm_fp16x2(const SgemmArgs& p, const Context& ctx) {
  if (p.k < FP16X2_SMALLEST_K || !std::isfinite(p.alpha)) return launch_fallback(p, nullptr, ctx);
  SgemmArgs one = p;
  one.batch = 1;
  for (int64_t i = 0; i < p.batch; ++i) {
    one.a.data = p.a.data + i * p.a.bs;
    one.b.data = p.b.data + i * p.b.bs;
    one.c.data = p.c.data + i * p.c.bs;
    multiply_one(one, ctx);
  }
}

}  // namespace fl
