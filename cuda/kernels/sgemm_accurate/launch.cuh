// The launches of an accurate product: the split pass and the product. Each begins while the one before it ends.
#pragma once

#include <algorithm>

#include "core/layout.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/tensor_map.cuh"
#include "cuda/kernels/sgemm_accurate/operand_split.cuh"
#include "cuda/kernels/sgemm_accurate/persistent_product.cuh"
#include "cuda/kernels/sgemm_accurate/single_tile_product.cuh"
#include "plan/prepacked_operand.h"

namespace fl {

// A product of three bf16 terms, and its fallback. With `previous`, the status of two fp16 terms, only if those are
// rejected.
void launch_bf16x6(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx);
void launch_bf16x6_mma(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx);
// Float32 FMA where `status` rejects the terms, and always if it is null.
void launch_float32_fallback(const SgemmArgs& p, const unsigned* status, const Context& ctx);

// One problem of a batch.
inline SgemmArgs problem_of(const SgemmArgs& p, int64_t i) {
  SgemmArgs one = p;
  one.batch = 1;
  one.a.data += i * p.a.bs, one.b.data += i * p.b.bs, one.c.data += i * p.c.bs;
  if (p.addend.data) one.addend.data += i * p.addend.bs;
  return one;
}

// Calls multiply(problem, context) for each problem of a batch, with its prepacked operands.
template <class Multiply>
void for_each_problem(const SgemmArgs& p, const Context& ctx, Multiply&& multiply) {
  PrepackedOperands prepacked = ctx.prepacked ? *ctx.prepacked : PrepackedOperands{};
  Context one = ctx;
  one.prepacked = &prepacked;
  for (int64_t i = 0; i < p.batch; ++i) {
    multiply(problem_of(p, i), one);
    for (PrepackedOperand* const each : {&prepacked.a, &prepacked.b}) {
      if (each->apart) each->memory += each->apart;
      else each->set_ready(each->memory != nullptr);  // the first problem has made it for all
    }
  }
}

// What the split pass leaves of an operand of one product: in the workspace, or where it is prepacked.
struct SplitView {
  int64_t groups;
  unsigned* words;
  int* exponents;
  char* terms;
  std::size_t panel_bytes;  // of TERM_BLOCK lines, where some lines are missing and others are not
  LineRange missing;        // what the split pass has to make

  SplitView(const SplitLayout& layout, char* memory, int64_t lines, int64_t first = 0, LineRange not_there = {})
      : groups(ceil_div(lines, SPLIT_LINES)),
        words(reinterpret_cast<unsigned*>(memory) + first / SPLIT_LINES),
        exponents(reinterpret_cast<int*>(memory + layout.exponents) + first),
        terms(memory + layout.terms + std::size_t(first / TERM_BLOCK) * layout.panel_bytes),
        panel_bytes(layout.panel_bytes),
        missing{not_there.begin, std::min(not_there.end, lines)} {}

  int64_t missing_groups() const { return missing.empty() ? 0 : ceil_div(missing.end - missing.begin, SPLIT_LINES); }
  SplitOperand to_split(const float* data, int64_t line_stride, int64_t ld, bool k_contiguous) const {
    const float* const from = data + missing.begin * line_stride;
    return {from,
            ld,
            missing.end - missing.begin,
            k_contiguous,
            aligned<4>(from, ld),
            words + missing.begin / SPLIT_LINES,
            terms + std::size_t(missing.begin / TERM_BLOCK) * panel_bytes,
            exponents + missing.begin};
  }
};

struct ProductOperands {
  int64_t k_blocks, b_panel;
  SplitView a, b;
  unsigned* statuses;
  SegmentRecord* records;
  float* sums;

  ProductOperands(const SgemmArgs& p, const AccuratePlan& plan, Terms kind, const Context& ctx)
      : k_blocks(plan.k_blocks),
        b_panel(plan.b.panel_lines),
        a(place(p.m, p.k, kind, plan.a, ctx, plan.a_begin, ctx.prepacked ? &ctx.prepacked->a : nullptr)),
        b(place(p.n, p.k, kind, plan.b, ctx, plan.b_begin, ctx.prepacked ? &ctx.prepacked->b : nullptr)),
        statuses(static_cast<unsigned*>(ctx.workspace)),
        records(reinterpret_cast<SegmentRecord*>(static_cast<char*>(ctx.workspace) + plan.segments_begin)),
        sums(reinterpret_cast<float*>(static_cast<char*>(ctx.workspace) + plan.sums_begin)) {}

 private:
  static SplitView place(int64_t lines, int64_t k, Terms kind, const SplitLayout& own, const Context& ctx,
                         std::size_t begin, const PrepackedOperand* prepacked) {
    if (!prepacked || !prepacked->memory) return {own, static_cast<char*>(ctx.workspace) + begin, lines};
    const SplitLayout layout = prepacked->shared ? SplitLayout(prepacked->lines, k, kind) : own;
    return {layout, prepacked->memory, lines, prepacked->first, prepacked->missing};
  }
};

// One launch for what is not prepacked. As a fallback it is of few blocks, which have little to do if not needed.
template <class S>
void launch_split(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound, const unsigned* previous,
                  const Context& ctx) {
  const int64_t a_groups = at.a.missing_groups(), b_groups = at.b.missing_groups();
  if (a_groups + b_groups == 0) return;
  const SplitPlan split{at.a.to_split(p.a.data, p.a.rs, ld(p.a), p.a.cs == 1),
                        at.b.to_split(p.b.data, p.b.cs, ld(p.b), p.b.cs != 1),
                        p.k,
                        at.k_blocks,
                        static_cast<unsigned>(a_groups),
                        static_cast<unsigned>(a_groups + b_groups),
                        static_cast<unsigned>(at.b_panel / SPLIT_LINES),
                        bound.small,
                        bound.large,
                        double(p.m) * double(p.n) <= 0x1p20,
                        previous};
  const unsigned few = 2 * static_cast<unsigned>(ctx.sm_count);
  const unsigned blocks = previous && split.groups > few ? few : split.groups;
  const auto launch_all = [&](auto unswizzled) {
    constexpr bool UNSWIZZLED = decltype(unswizzled)::value;
    if (const int segments = split_segments(split.groups, p.k); segments > 1) {
      const SplitSegments cut{split, unsigned(segments), at.records, at.records + SEGMENT_BLOCKS};
      const LaunchShape all{split.groups * cut.segments, LongSplit::THREADS};
      launch_kernel<split_segments_kernel<S, LongSplit, 2, UNSWIZZLED>>(all, ctx, cut);
      return launch_kernel<finish_segments_kernel<S, LongSplit, 2, UNSWIZZLED>>(all, ctx, cut);
    }
    if (p.k > RangeBound::ONE_PIECE)
      return launch_kernel<operand_split_kernel<S, true, LongSplit, 2, UNSWIZZLED>>({blocks, LongSplit::THREADS}, ctx,
                                                                                    split);
    if constexpr (S::COUNT == 3)
      if (2 * split.groups <= 3 * static_cast<unsigned>(ctx.sm_count))
        return launch_kernel<operand_split_kernel<S, false, WideSplit, 1, UNSWIZZLED>>({blocks, WideSplit::THREADS},
                                                                                       ctx, split);
    launch_kernel<operand_split_kernel<S, false, ShortSplit, 2, UNSWIZZLED>>({blocks, ShortSplit::THREADS}, ctx, split);
  };
  if constexpr (S::COUNT == 2)
    if (at.b_panel != TERM_BLOCK) return launch_all(std::true_type{});
  launch_all(std::false_type{});
}

// Compiled once, with the kernels that are of these terms.
extern template void launch_split<Fp16Terms>(const SgemmArgs&, const ProductOperands&, const RangeBound&,
                                             const unsigned*, const Context&);
extern template void launch_split<Bf16Terms>(const SgemmArgs&, const ProductOperands&, const RangeBound&,
                                             const unsigned*, const Context&);

// Where B is A transposed: one pass, whose terms serve as both.
template <class S>
ProductOperands launch_shared_split(const SgemmArgs& p, const RangeBound& bound, const unsigned* previous,
                                    const Context& ctx) {
  ProductOperands at(p, AccuratePlan(p, S::KIND), S::KIND, ctx);
  at.b.missing = {0, 0};
  launch_split<S>(p, at, bound, previous, ctx);
  at.b = at.a;
  return at;
}

// Boxes of 16 x 32 floats; false if the driver cannot be asked or they do not fit C.
inline bool c_tensor_map(CUtensorMap& map, const SgemmArgs& p) {
  return allows_tma_store(p) && tensor_map(map, p.c.data, p.m, p.n, p.c.rs, 16, 32, CU_TENSOR_MAP_SWIZZLE_128B,
                                           CU_TENSOR_MAP_L2_PROMOTION_NONE);
}

// As those of a symmetric C are stored.
inline bool mirrored_tensor_map(CUtensorMap& map, const SgemmArgs& p) {
  return allows_tma_store(p) &&
         tensor_map(map, p.c.data, p.m, p.n, p.c.rs, MIRRORED_BOX, MIRRORED_BOX, CU_TENSOR_MAP_SWIZZLE_64B);
}

// How many clusters run at a time. The answer of the last device is kept: it takes longer to ask than to launch.
template <class T, class Kernel>
int resident_clusters(Kernel kernel, int sm_count) {
  if (T::CLUSTER == 1) return sm_count;
  static uint64_t known = 0;  // multiprocessors, clusters
  const uint64_t last = __atomic_load_n(&known, __ATOMIC_RELAXED);
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
  __atomic_store_n(&known, uint64_t(sm_count) << 32 | uint64_t(clusters), __ATOMIC_RELAXED);
  return clusters;
}

template <class T, Store STORE>
void launch_tiles(PersistentPlan both, const CUtensorMap& map, const Context& ctx) {
  ProductPlan& plan = both.product;
  constexpr auto kernel = persistent_product_kernel<T, STORE>;
  bool for_sm90 = false;  // before it is asked how many clusters run at a time
  if (prepare_kernel<kernel>(for_sm90, T::SHARED_BYTES) != cudaSuccess) return;
  plan.tile_rows = int(ceil_div(plan.out.m, T::BM));
  plan.tile_cols = int(ceil_div(plan.out.n, T::BN * T::CLUSTER));
  plan.band = plan.out.n >= 8192 && plan.k_blocks <= 32 ? 11 : 8;
  const int64_t rows = plan.tile_rows, tiles = T::TRIANGLE ? rows * (rows + 1) / 2 : rows * plan.tile_cols;
  const int64_t clusters = resident_clusters<T>(kernel, ctx.sm_count);
  const auto blocks = static_cast<unsigned>((tiles < clusters ? tiles : clusters) * T::CLUSTER);
  launch_kernel<kernel>({blocks, T::THREADS, T::SHARED_BYTES, T::CLUSTER}, ctx, both, map);
}

inline RangeCheck range_check_of(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound,
                                 const unsigned* previous, unsigned* status) {
  return {at.a.words,    at.b.words,       int(at.a.groups), int(at.a.groups + at.b.groups),
          unsigned(p.k), bound.both_large, status,           previous};
}

inline AccurateEpilogue epilogue_of(const SgemmArgs& p, const ProductOperands& at) {
  const ConstMatrix addend = addend_of(p);
  return {at.a.exponents, at.b.exponents, p.c.data, p.c.rs, {addend.data, addend.rs, addend.cs, allows_vectors(addend)},
          int(p.m),       int(p.n),       p.alpha,  p.beta, p.m * p.n <= int64_t{1} << 22};
}

inline ProductPlan product_plan(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound,
                                const unsigned* previous, unsigned* status) {
  return {at.a.terms,        at.b.terms, int(at.k_blocks), 0, 0, 0, range_check_of(p, at, bound, previous, status),
          epilogue_of(p, at)};
}

// `last`: these terms have no other fallback than float32. Returns whether that is inside.
template <class T>
bool launch_product(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound, const unsigned* previous,
                    unsigned* status, bool last, const Context& ctx) {
  const bool falls_back = last && T::FALLS_BACK;
  PersistentPlan product{product_plan(p, at, bound, previous, status), Fallback(p, falls_back)};
  CUtensorMap map{};
  if constexpr (T::TRIANGLE) {
    product.product.out.by_boxes = mirrored_tensor_map(map, p);
    launch_tiles<T, Store::mirrored>(product, map, ctx);
  } else if (!c_tensor_map(map, p) || (p.beta != 0.0f && !product.product.out.addend.by16))
    launch_tiles<T, Store::direct>(product, map, ctx);
  else if (p.beta != 0.0f && p.addend.data && p.addend.rs == 0) launch_tiles<T, Store::tma_row>(product, map, ctx);
  else if (p.beta != 0.0f) launch_tiles<T, Store::tma_blend>(product, map, ctx);
  else launch_tiles<T, Store::tma>(product, map, ctx);
  return falls_back;
}

// Whether one triangle is computed. Prepacked operands are those of whole products.
inline bool launches_triangle(const SgemmArgs& p, const Context& ctx) {
  return computes_triangle(p) && !(ctx.prepacked && (ctx.prepacked->a.memory || ctx.prepacked->b.memory));
}

// One tile for each cluster.
template <class T>
bool launch_single(const SgemmArgs& p, const ProductOperands& at, const RangeBound& bound, const unsigned* previous,
                   unsigned* status, bool falls_back, const Context& ctx) {
  SinglePlan single{product_plan(p, at, bound, previous, status),
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
    launch_kernel<single_tile_kernel<T, TA, TB>>({blocks, T::THREADS, T::SHARED_BYTES, T::BLOCKS}, ctx, single);
  });
  return falls_back;
}

}  // namespace fl
