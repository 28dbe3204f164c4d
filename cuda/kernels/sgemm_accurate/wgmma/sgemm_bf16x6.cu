// Float32 accuracy on the tensor cores over the whole range of exponents: three bf16 terms, six products. Half as fast
// as fp16x2, whose fallback it is.
#include "cuda/kernels/sgemm_accurate/wgmma/persistent_launch.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/products.cuh"

namespace fl {

namespace {

constexpr WgmmaTile SQUARE = bf16x6_128x128, SMALL = bf16x6_128x64;

// Smaller tiles may leave fewer multiprocessors idle in the last round (65 us instead of 77 at 1536, 201 instead of 205
// at 3072), but are slower (94 instead of 91 at 2048).
bool small_is_faster(const SgemmArgs& p, int sm_count) {
  const auto columns = [&](int64_t BN) {
    return BN * ceil_div(ceil_div(p.m, SQUARE.BM) * ceil_div(p.n, BN), sm_count);
  };
  return 10 * columns(SMALL.BN) <= 9 * columns(SQUARE.BN);
}

}  // namespace

bool launch_bf16x6(const SgemmArgs& p, const unsigned* previous, unsigned* status, const Context& ctx,
                   const Expectation& expectation) {
  Context own = ctx;
  if (previous) own.prepacked = nullptr;  // they are of two fp16 terms
  const auto single = [&](const WgmmaTile& t) { return in_one_round(t, p, ctx.sm_count); };
  const RangeBound bound(Terms::bf16x6, p.k);
  // Where C is added before it is known what two terms say, float32 is left to them. What is inside reads float32.
  const bool left = expectation.words_of_two && p.beta != 0.0f, inside = !left && !any_in_16_bits(p.stored);
  if (launches_triangle(p, own)) {
    static_assert(SQUARE.falls_back);
    if (!launch_triangle<SQUARE>(p, bound, previous, status, inside, own, expectation))
      launch_float32_fallback(p, status, ctx);
    return false;
  }
  const AccurateSplitK split_k = three_terms_split_k(p);
  const ProductOperands at(p, AccuratePlan(p, Terms::bf16x6, TERM_BLOCK, split_k), Terms::bf16x6, own);
  AccurateProduct product{p, at, bound, previous, status, inside, ctx};
  product.expectation = expectation;
  launch_split<Bf16Terms>(product);
  bool falls_back = false;
  const bool in_pairs = three_terms_in_pairs(p);
  if (in_pairs) {
    constexpr WgmmaTile SQUARE_PAIR = bf16x6_single_64x64c2;
    falls_back = in_one_round(SQUARE_PAIR, p) ? launch_single<SQUARE_PAIR>(product)
                                              : launch_single<bf16x6_single_192x64c2>(product);
  } else if (split_k.count > 1) {
    // Behind two terms float32 sums up the parts of those.
    product.last = falls_back = inside && (!expectation.beside || wgmma_split_k(p).count > 1);
    launch_split_k<bf16x6_split_k>(product, split_k);
  } else if (single(bf16x6_single_64x64)) falls_back = launch_single<bf16x6_single_64x64>(product);
  else if (single(bf16x6_single_128x64)) falls_back = launch_single<bf16x6_single_128x64>(product);
  else if (small_is_faster(p, ctx.sm_count)) falls_back = launch_persistent<SMALL>(product);
  else falls_back = launch_persistent<SQUARE>(product);
  if (!falls_back && !left) launch_float32_fallback(p, status, ctx);
  return in_pairs || (split_k.count == 1 && single(bf16x6_single_128x64));
}

void sgemm_bf16x6(const SgemmArgs& p, const Context& ctx) {
  auto* const status = static_cast<unsigned*>(ctx.workspace);
  multiply_by_terms(
      p, ctx, [&](const SgemmArgs& one, const Context& context) { launch_bf16x6(one, nullptr, status, context); });
}

}  // namespace fl
