// precision="reproducible" for few tiles and a long k: blocks of k are a batch of products by a strict kernel whose
// sums are one chain in ascending k, as that of a block is, or each is a warp's (slabs_of_warps.cuh), and add_slabs.cuh
// adds their results in order.
//
// A slab is written once and read once, which takes as long as reading max(m, n) / 2 rows of an operand's block: little
// where m and n are small. Products of one block need none.
#include "cuda/kernels/sgemm_reproducible/add_slabs.cuh"
#include "cuda/kernels/sgemm_reproducible/slabs_of_warps.cuh"

namespace fl {

void sgemm_strict_64x128m1(const SgemmArgs&, const Context&);
void sgemm_strict_64x64m1(const SgemmArgs&, const Context&);
void sgemm_strict_16x16w(const SgemmArgs&, const Context&);
void sgemm_strict_short_k(const SgemmArgs&, const Context&);

namespace {

using Product = void(const SgemmArgs&, const Context&);

// The products of `count` whole blocks from `first` on, or of a part of one.
SgemmArgs blocks_from(const SgemmArgs& p, int64_t first, int64_t count, int64_t k, float* slab, int64_t ld) {
  SgemmArgs part = p;
  part.k = k, part.alpha = 1.0f, part.beta = 0.0f, part.precision = Precision::strict, part.symmetric = false;
  part.a.data += first * REPRODUCIBLE_BLOCK * p.a.cs, part.b.data += first * REPRODUCIBLE_BLOCK * p.b.rs;
  part.c = {slab, ld, 1, p.m * ld};
  if (p.batch > 1) return part;
  part.batch = count;
  part.a.bs = REPRODUCIBLE_BLOCK * p.a.cs, part.b.bs = REPRODUCIBLE_BLOCK * p.b.rs;
  return part;
}

// Of one problem all blocks of a group at once, of several one block at a time. `tail` multiplies a block that is not
// whole.
void in_slabs(const SgemmArgs& call, Product* product, Product* tail, const Context& ctx) {
  if (is_plain_product(call)) return (call.k % REPRODUCIBLE_BLOCK == 0 ? product : tail)(call, ctx);
  for_each_group(call, slab_plan(call), ctx, [&](const SgemmArgs& p, int64_t first, const Slabs& slabs) {
    const int64_t at_once = p.batch > 1 ? 1 : slabs.count;
    for (int64_t i = 0; i < slabs.count; i += at_once) {
      const int64_t at = first + i, k = std::min(p.k - at * REPRODUCIBLE_BLOCK, at_once * REPRODUCIBLE_BLOCK);
      const int64_t whole = k / REPRODUCIBLE_BLOCK, rest = k % REPRODUCIBLE_BLOCK;
      float* const slab = slabs.sums + i * slabs.stride;
      if (whole > 0) product(blocks_from(p, at, whole, REPRODUCIBLE_BLOCK, slab, slabs.ld), ctx);
      if (rest > 0) tail(blocks_from(p, at + whole, 1, rest, slab + whole * slabs.stride, slabs.ld), ctx);
    }
  });
}

// One block of k, and all of them on devices without asynchronous copies, are left to the strict kernel of this kind. A
// copy of 16 bytes of A that straddles the end of k leaves +0 behind it there, which takes the sign off a sum of -0.
template <WarpTile TILE>
void in_slabs_of_warps(const SgemmArgs& call, const Context& ctx) {
  if (is_plain_product(call) || !ctx.device->has(feature_cp_async))
    return in_slabs(call, sgemm_strict_16x16w, call.k % 4 == 0 ? sgemm_strict_16x16w : sgemm_strict_short_k, ctx);
  for_each_group(call, slab_plan(call), ctx, [&](const SgemmArgs& p, int64_t first, const Slabs& slabs) {
    launch_slab_tiles<TileOfAWarp<TILE, true>>(p, first, slabs, ctx);
  });
}

}  // namespace

void sgemm_reproducible_64x128m1(const SgemmArgs& p, const Context& ctx) {
  in_slabs(p, sgemm_strict_64x128m1, sgemm_strict_64x128m1, ctx);
}
void sgemm_reproducible_64x64m1(const SgemmArgs& p, const Context& ctx) {
  in_slabs(p, sgemm_strict_64x64m1, sgemm_strict_64x64m1, ctx);
}
void sgemm_reproducible_64x32w(const SgemmArgs& p, const Context& ctx) {
  in_slabs_of_warps<reproducible_64x32w>(p, ctx);
}
void sgemm_reproducible_16x16w(const SgemmArgs& p, const Context& ctx) {
  in_slabs_of_warps<reproducible_16x16w>(p, ctx);
}
void sgemm_reproducible_short_k(const SgemmArgs& p, const Context& ctx) {
  in_slabs(p, sgemm_strict_short_k, sgemm_strict_short_k, ctx);
}

}  // namespace fl
