// Float32 accuracy at the speed of the tensor cores: each operand as the sum of two fp16 slices, three products.
//
// The split pass, the product, and what stands by for numbers that two slices cannot hold (docs/accuracy.md): three
// bf16 slices, and behind those a strict kernel. Which of them has something to do is decided on the device. Calls with
// a small k, and those with an alpha that is NaN or infinite, run the strict kernel alone.
// A batch is a loop: the problems that come here are large enough, and the workspace stays that of one problem.
#include <cmath>

#include "cuda/kernels/sgemm_accurate/sliced_ranges.cuh"

namespace fl {
namespace {

using Tall = ProductTile<Fp16Slices, 2, 128, 2, 2, 2>;
using Middle = ProductTile<Fp16Slices, 1, 128, 3, 2, 1>;
using Wide = ProductTile<Fp16Slices, 1, 96, 3, 2, 1>;
using Even = ProductTile<Fp16Slices, 1, 128, 2, 3, 1>;
using Small = ProductTile<Fp16Slices, 1, 64, 2, 4, 1>;
using Flat = SingleTile<Fp16Slices, 2, 1, 64, 4, 1>;
using Broad = SingleTile<Fp16Slices, 1, 2, 96, 4, 1>;
using Square = SingleTile<Fp16Slices, 1, 2, 64, 4, 1>;
using SquareBy2 = SingleTile<Fp16Slices, 1, 2, 64, 4, 2>;

// What products of other sizes can share has strips of 64 columns: then tiles of such columns take the place of those
// with 96, with the same bits.
SlicedChoice tile_for(const SgemmArgs& p, const SlicedRanges& ranges, const Context& ctx) {
  if (ranges.count > 1) return {SlicedTile::ranges_128x128, SLICE_BLOCK, ranges.rounds_area, ranges.ends};
  SlicedChoice choice = sliced_choice(p.m, p.n, p.k, ctx.sm_count);
  const bool shared = ctx.splits->b.memory && ctx.splits->b.shared;
  if (shared && choice.b_tile != SLICE_BLOCK) {
    choice.tile = choice.tile == SlicedTile::single_64x96 ? SlicedTile::single_64x64 : SlicedTile::middle_192x128;
    choice.b_tile = SLICE_BLOCK;
  }
  return choice;
}

void multiply_one(const SgemmArgs& p, const Context& ctx) {
  const SlicedRanges ranges = sliced_ranges(p.m, p.n, p.k);
  const SlicedChoice choice = tile_for(p, ranges, ctx);
  const SlicedOperands at(p, SlicedPlan(p, Slices::fp16x2, choice.b_tile, ranges), Slices::fp16x2, ctx);
  const SlicedBound bound(Slices::fp16x2, p.k);
  unsigned* const verdicts = at.verdicts;
  const bool more = bf16x6_stands_by(p);
  bool settled = false;
  launch_split<Fp16Slices>(p, at, bound, nullptr, ctx);
  const auto product = [&](auto tile) {
    launch_product<decltype(tile)>(p, at, bound, nullptr, verdicts, ctx);
    return false;
  };
  const auto single = [&](auto tile) {
    return launch_single<decltype(tile)>(p, at, bound, nullptr, verdicts, !more, ctx);
  };
  switch (choice.tile) {
    case SlicedTile::tall_256x128: settled = product(Tall{}); break;
    case SlicedTile::middle_192x128: settled = product(Middle{}); break;
    case SlicedTile::middle_192x96: settled = product(Wide{}); break;
    case SlicedTile::even_128x128: settled = product(Even{}); break;
    case SlicedTile::small_128x64: settled = product(Small{}); break;
    case SlicedTile::single_128x64: settled = single(Flat{}); break;
    case SlicedTile::single_64x96: settled = single(Broad{}); break;
    case SlicedTile::single_64x64: settled = single(Square{}); break;
    case SlicedTile::single_64x64_by_2: settled = single(SquareBy2{}); break;
    case SlicedTile::ranges_128x128:
      launch_ranges<Fp16Slices>(p, at, ranges, bound, nullptr, verdicts, !more, ctx);
      settled = true;
      break;
  }
  if (more) launch_bf16x6(p, verdicts, verdicts + 1, ctx);  // in the workspace: what is kept stays as it is
  else if (!settled) launch_sliced_fallback(p, verdicts, ctx);
}

}  // namespace

void sgemm_fp16x2(const SgemmArgs& p, const Context& ctx) {
  if (!sliced_fits(p.k) || !std::isfinite(p.alpha)) return launch_sliced_fallback(p, nullptr, ctx);
  for_each_problem(p, ctx, multiply_one);
}

}  // namespace fl
