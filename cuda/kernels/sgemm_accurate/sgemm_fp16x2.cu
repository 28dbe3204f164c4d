// Float32 accuracy at the speed of the tensor cores: each operand as the sum of two fp16 terms, three products (an
// Ozaki scheme with two terms).
//
// The split pass (operand_split.cuh), the product, and fallbacks for numbers that two terms cannot hold
// (range_check.cuh, docs/accuracy.md): three bf16 terms, and behind those plain float32. Which of them has something to
// do is decided on the device. Calls with a small k, and those with an alpha that is NaN or infinite, run in float32
// alone. A batch is a loop: the problems that come here are large enough, and the workspace stays that of one problem.
//
// The product is computed by persistent blocks (persistent_product.cuh), by a block for each tile where tiles are few
// (single_tile_product.cuh), or split along k where k is long besides (split_k.cuh). What these share: pipeline.cuh,
// and epilogue.cuh. The plan says which (cpp/plan/accurate_plan.h).
#include <cmath>

#include "cuda/kernels/sgemm_accurate/split_k.cuh"

namespace fl {

template void launch_split<Fp16Terms>(const SgemmArgs&, const ProductOperands&, const RangeBound&, const unsigned*,
                                      const Context&);

namespace {

using Tall = PersistentTile<Fp16Terms, 2, 128, 2, 2, 2>;
using Middle = PersistentTile<Fp16Terms, 1, 128, 3, 2, 1>;
using Wide = PersistentTile<Fp16Terms, 1, 96, 3, 2, 1, true>;
using Even = PersistentTile<Fp16Terms, 1, 128, 2, 3, 1, true>;
using Small = PersistentTile<Fp16Terms, 1, 64, 2, 4, 1>;
using Flat = SingleTile<Fp16Terms, 2, 1, 64, 4, 1>;
using Broad = SingleTile<Fp16Terms, 1, 2, 96, 4, 1>;
using Square = SingleTile<Fp16Terms, 1, 2, 64, 4, 1>;
using SquareBy2 = SingleTile<Fp16Terms, 1, 2, 64, 4, 2>;

template <AccurateTile TILE, class T>
constexpr bool is_planned_as = is_planned(TILE, T::BM, T::BN, T::PARTS);
static_assert(is_planned_as<AccurateTile::tall_256x128, Tall> && is_planned_as<AccurateTile::middle_192x128, Middle> &&
                  is_planned_as<AccurateTile::middle_192x96, Wide> && is_planned_as<AccurateTile::even_128x128, Even> &&
                  is_planned_as<AccurateTile::small_128x64, Small> &&
                  is_planned_as<AccurateTile::single_128x64, Flat> &&
                  is_planned_as<AccurateTile::single_64x96, Broad> &&
                  is_planned_as<AccurateTile::single_64x64, Square> &&
                  is_planned_as<AccurateTile::single_64x64_by_2, SquareBy2>,
              "a tile has another size or other parts of k than the plan reckons with");

// A prepacked B that products of other sizes can share has panels of 64 columns: then tiles of such columns take the
// place of those with 96, with the same bits.
AccurateTileChoice tile_for(const SgemmArgs& p, const AccurateSplitK& split_k, const Context& ctx) {
  if (split_k.count > 1) return {AccurateTile::split_k_128x128, TERM_BLOCK, split_k.rounds_area, split_k.ends};
  AccurateTileChoice choice = choose_accurate_tile(p.m, p.n, p.k, ctx.sm_count);
  const bool shared = ctx.prepacked->b.memory && ctx.prepacked->b.shared;
  if (shared && choice.b_panel != TERM_BLOCK) {
    choice.tile = choice.tile == AccurateTile::single_64x96 ? AccurateTile::single_64x64 : AccurateTile::middle_192x128;
    choice.b_panel = TERM_BLOCK;
  }
  return choice;
}

// Both return whether the float32 fallback is inside if these terms have no other: `last`.
bool launch_triangle(const SgemmArgs& p, const RangeBound& bound, unsigned* status, bool last, const Context& ctx) {
  const ProductOperands at = launch_shared_split<Fp16Terms>(p, bound, nullptr, ctx);
  if (choose_triangle_tile(p.n, p.k, ctx.sm_count).tile == AccurateTile::tall_256x128)
    return launch_product<TriangleTile<Tall>>(p, at, bound, nullptr, status, last, ctx);
  return launch_product<TriangleTile<Even>>(p, at, bound, nullptr, status, last, ctx);
}

bool launch_whole(const SgemmArgs& p, const RangeBound& bound, unsigned* status, bool last, const Context& ctx) {
  const AccurateSplitK split_k = accurate_split_k(p.m, p.n, p.k);
  const AccurateTileChoice choice = tile_for(p, split_k, ctx);
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2, choice.b_panel, split_k), Terms::fp16x2, ctx);
  launch_split<Fp16Terms>(p, at, bound, nullptr, ctx);
  const auto product = [&](auto tile) {
    return launch_product<decltype(tile)>(p, at, bound, nullptr, status, last, ctx);
  };
  const auto single = [&](auto tile) {
    return launch_single<decltype(tile)>(p, at, bound, nullptr, status, last, ctx);
  };
  switch (choice.tile) {
    case AccurateTile::tall_256x128: return product(Tall{});
    case AccurateTile::middle_192x128: return product(Middle{});
    case AccurateTile::middle_192x96: return product(Wide{});
    case AccurateTile::even_128x128: return product(Even{});
    case AccurateTile::small_128x64: return product(Small{});
    case AccurateTile::single_128x64: return single(Flat{});
    case AccurateTile::single_64x96: return single(Broad{});
    case AccurateTile::single_64x64: return single(Square{});
    case AccurateTile::single_64x64_by_2: return single(SquareBy2{});
    case AccurateTile::split_k_128x128: launch_split_k<Fp16Terms>(p, at, split_k, bound, nullptr, status, last, ctx);
  }
  return true;
}

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const RangeBound bound(Terms::fp16x2, p.k);
  auto* const statuses = static_cast<unsigned*>(ctx.workspace);
  const bool bf16x6 = has_bf16x6_fallback(p);
  const auto launch = launches_triangle(p, ctx) ? launch_triangle : launch_whole;
  const bool with_fallback = launch(p, bound, statuses, !bf16x6, ctx);
  if (bf16x6) launch_bf16x6(p, statuses, statuses + 1, ctx);  // in the workspace: prepacked operands stay
  else if (!with_fallback) launch_float32_fallback(p, statuses, ctx);
}

}  // namespace

void sgemm_fp16x2(const SgemmArgs& p, const Context& ctx) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
  for_each_problem(p, ctx, multiply_one);
}

}  // namespace fl
