// Float32 accuracy at the speed of the tensor cores: each operand as the sum of two fp16 terms, three products (an
// Ozaki scheme with two terms).
//
// The split pass (split/), the product, and fallbacks for numbers that two terms cannot hold (range_check.cuh,
// docs/accuracy.md): three bf16 terms, and behind those plain float32 (fallback/). Which of them has something to do is
// decided on the device.
//
// The product is computed by persistent blocks (persistent_product.cuh), by a block for each tile where tiles are few
// (single_tile_product.cuh), or split along k where k is long besides (split_k_product.cuh). What these share:
// pipeline.cuh. The plan says which (cpp/plan/accurate/wgmma_plan.h).
#include <algorithm>

#include "core/call_cache.h"
#include "cuda/kernels/sgemm_accurate/split/launch.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/persistent_launch.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/products.cuh"

namespace fl {
namespace {

// A prepacked B that products of other sizes can share has panels of 64 columns: then tiles of such columns take the
// place of those with 96, with the same bits.
int tile_for(const SgemmArgs& p, const Context& ctx) {
  const SgemmArgs call = rows_first(p);
  int index = choose_wgmma_tile(call.m, call.n, p.k, ctx.sm_count).index;
  if (any_in_16_bits(p.stored))
    index = fastest_wgmma_tile(p.m, p.n, p.k, ctx.sm_count, fp16x2_tiles[index].k_parts(), true).index;
  const bool shared = ctx.prepacked->b.memory && ctx.prepacked->b.shared;
  if (!shared || fp16x2_tiles[index].b_panel() == TERM_BLOCK) return index;
  const WgmmaTile& other = fp16x2_tiles[index].single ? fp16x2_single_64x64 : fp16x2_192x128;
  return int(std::find(std::begin(fp16x2_tiles), std::end(fp16x2_tiles), other) - std::begin(fp16x2_tiles));
}

// Which launches compute a product depends on the last one of such operands, its bits do not. Products that leave two
// terms for three in one launch have an answer.
Expectation expectation_of(const SgemmArgs& p, const Context& ctx) {
  const bool a = ctx.prepacked->a.memory, b = ctx.prepacked->b.memory;
  const bool all_split = p.beta != 0.0f || computes_triangle(p);
  if (!ctx.rejections || !has_room_for_three_terms(p) || (all_split ? a || b : a && b) || any_in_16_bits(p.stored))
    return {};
  uint64_t hash = 0;
  for (const uint64_t x : {uint64_t(p.m), uint64_t(p.n), uint64_t(p.k), uint64_t(p.a.data), uint64_t(p.b.data)})
    hash = mixed(hash, x);
  unsigned* const rejected = ctx.rejections + (hash >> 32) % REJECTION_WORDS;
  return {rejected, __atomic_load_n(rejected, __ATOMIC_RELAXED) != 0};
}

// Both return whether the float32 fallback is inside if these terms have no other: `last`.
bool launch_one_triangle(const SgemmArgs& p, const RangeBound& bound, unsigned* status, bool last, const Context& ctx,
                         const Expectation& expectation) {
  const int index = choose_triangle_tile(p.n, p.k, ctx.sm_count).index;
  return launch_tile<fp16x2_tiles>(index, [&]<WgmmaTile TILE>() {
    if constexpr (TILE.has_triangle)
      return launch_triangle<TILE>(p, bound, expectation.previous(status), status, last, ctx, expectation);
    else return false;
  });
}

template <WgmmaTile TILE>
bool launch_whole(const AccurateProduct& product) {
  if constexpr (TILE.single) return launch_single<TILE>(product);
  else return launch_persistent<TILE>(product);
}

bool launch_all_of_c(const SgemmArgs& p, const RangeBound& bound, unsigned* status, bool last, const Context& ctx,
                     const Expectation& expectation) {
  const AccurateSplitK split_k = wgmma_split_k(p);
  const int index = split_k.count > 1 ? -1 : tile_for(p, ctx);
  const int64_t b_panel = index < 0 ? TERM_BLOCK : fp16x2_tiles[index].b_panel();
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2, b_panel, split_k), Terms::fp16x2, ctx);
  AccurateProduct product{p, at, bound, expectation.previous(status), status, last, ctx};
  product.expectation = expectation;
  if (split_k.count == 1) product.left_out = p.stored[0].in_16_bits() + p.stored[1].in_16_bits();
  if (!expectation.split_of_two) launch_split<Fp16Terms>(product);
  if (split_k.count == 1)
    return launch_tile<fp16x2_tiles>(index, [&]<WgmmaTile TILE>() {
      if (product.left_out == 1) return launch_whole<TILE.leaving_out(1)>(product);
      if (product.left_out == 2) return launch_whole<TILE.leaving_out(2)>(product);
      return launch_whole<TILE>(product);
    });
  launch_split_k<fp16x2_split_k>(product, split_k);
  return last;
}

// What launch_all_of_c() would split, in one piece of k.
SplitPlan split_of_two(const SgemmArgs& p, const RangeBound& bound, unsigned* status, const Context& ctx) {
  const int64_t b_panel = fp16x2_tiles[tile_for(p, ctx)].b_panel();
  const ProductOperands at(p, AccuratePlan(p, Terms::fp16x2, b_panel), Terms::fp16x2, ctx);
  return split_plan({p, at, bound, nullptr, status, true, ctx});
}

void multiply_one(const SgemmArgs& call, const Context& asked) {
  const SgemmArgs p = in_16_bits_first(call);
  PrepackedOperands prepacked = *asked.prepacked;
  if (b_alone_in_16_bits(call)) std::swap(prepacked.a, prepacked.b);
  Context ctx = asked;
  ctx.prepacked = &prepacked;
  const RangeBound bound = two_terms_bound(p);
  auto* const statuses = static_cast<unsigned*>(ctx.workspace);
  const bool bf16x6 = has_bf16x6_fallback(p);
  const bool triangle = launches_triangle(p, ctx);
  Expectation expectation = expectation_of(p, ctx);
  SplitPlan of_two{};
  if (expectation.expected) {
    Context behind = ctx;
    behind.prepacked = nullptr;  // they are of two terms
    behind.workspace = static_cast<char*>(ctx.workspace) + own_fp16x2_workspace(p);
    if (!prepacked.a.memory && !prepacked.b.memory)
      expectation.words_of_two = reinterpret_cast<unsigned*>(static_cast<char*>(behind.workspace) + RANGE_WORDS_BEGIN);
    if (expectation.words_of_two && p.k <= RangeBound::ONE_PIECE && !triangle)
      expectation.split_of_two = &(of_two = split_of_two(p, bound, statuses, ctx));
    const bool single = launch_bf16x6(
        p, nullptr, statuses + 1, behind,
        {.beside = true, .words_of_two = expectation.words_of_two, .split_of_two = expectation.split_of_two});
    expectation.beside = single && !expectation.words_of_two;
    if (!single) expectation.split_of_two = nullptr;
  }
  // The fallbacks of triangles and of split-K read float32.
  const bool reads_16_bits = !triangle && wgmma_split_k(p).count == 1;
  const bool computed = expectation.expected && p.beta == 0.0f;  // if two terms are rejected
  const bool inside = !bf16x6 && !computed && (reads_16_bits || !any_in_16_bits(p.stored));
  const bool with_fallback = triangle ? launch_one_triangle(p, bound, statuses, inside, ctx, expectation)
                                      : launch_all_of_c(p, bound, statuses, inside, ctx, expectation);
  if (bf16x6) launch_bf16x6(call, statuses, statuses + 1, ctx);  // in the workspace: prepacked operands stay
  else if (!with_fallback && !computed) launch_float32_fallback(call, statuses + 1, ctx);
}

}  // namespace

void sgemm_fp16x2(const SgemmArgs& p, const Context& ctx) { multiply_by_terms(p, ctx, multiply_one); }

}  // namespace fl
