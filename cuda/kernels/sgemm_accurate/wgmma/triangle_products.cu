// The kernels of a matrix times its own transpose: persistent blocks that compute one triangle of the tiles of C.
#include "cuda/kernels/sgemm_accurate/wgmma/mirrored_epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/persistent_launch.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/products.cuh"

namespace fl {

template <WgmmaTile TILE>
bool launch_triangle(const SgemmArgs& p, const RangeBound& bound, const unsigned* previous, unsigned* status, bool last,
                     const Context& ctx, const Expectation& expectation) {
  static_assert(TILE.has_triangle);
  using T = Wgmma<TILE.triangle_tile()>;
  ProductOperands at(p, AccuratePlan(p, TILE.terms), TILE.terms, ctx);
  const AccurateProduct product{p, at, bound, previous, status, last, ctx, 0, expectation};
  at.b.missing = {0, 0};
  launch_split<typename T::S>(product);
  at.b = at.a;
  PersistentPlan plan = persistent_plan<T>(product);
  CUtensorMap map{};
  plan.product.out.by_boxes = allows_tma_store(p) && tensor_map(map, p.c.data, p.m, p.n, p.c.rs, MIRRORED_BOX,
                                                                MIRRORED_BOX, CU_TENSOR_MAP_SWIZZLE_64B);
  launch_tiles<T, MirroredEpilogue>(plan, map, product);
  return plan.fallback.wanted;
}

template bool launch_triangle<fp16x2_256x128>(const SgemmArgs&, const RangeBound&, const unsigned*, unsigned*, bool,
                                              const Context&, const Expectation&);
template bool launch_triangle<fp16x2_128x128>(const SgemmArgs&, const RangeBound&, const unsigned*, unsigned*, bool,
                                              const Context&, const Expectation&);
template bool launch_triangle<bf16x6_128x128>(const SgemmArgs&, const RangeBound&, const unsigned*, unsigned*, bool,
                                              const Context&, const Expectation&);

}  // namespace fl
