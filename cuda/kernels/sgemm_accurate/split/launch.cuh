// The launch of the split pass.
#pragma once

#include "cuda/kernels/sgemm_accurate/product.cuh"
#include "cuda/kernels/sgemm_accurate/split/segments.cuh"

namespace fl {

// What of an operand is not prepacked.
inline SplitOperand missing_lines(const SplitView& to, const float* data, int64_t line_stride, int64_t ld,
                                  bool k_contiguous, const Stored& stored, bool one_term) {
  const float* from = data + to.missing.begin * line_stride;
  if (stored.in_16_bits()) from = reinterpret_cast<const float*>(place_of<Half>(stored, from));
  return {from,
          ld,
          to.missing.end - to.missing.begin,
          k_contiguous,
          aligned<4>(from, ld),
          stored.in_16_bits(),
          stored.element == Element::bfloat16,
          one_term && stored.in_16_bits(),
          to.words + to.missing.begin / SPLIT_LINES,
          to.terms + std::size_t(to.missing.begin / TERM_BLOCK) * to.panel_bytes,
          to.exponents + to.missing.begin};
}

inline SplitPlan split_plan(const AccurateProduct& product) {
  const SgemmArgs& p = product.p;
  const ProductOperands& at = product.at;
  // Prepacked operands serve products that read all terms too.
  const PrepackedOperands* const kept = product.ctx.prepacked;
  const bool one_term = product.left_out > 0 && !(kept && (kept->a.memory || kept->b.memory));
  const int64_t a_groups = at.a.missing_groups(), b_groups = at.b.missing_groups();
  SplitPlan plan{missing_lines(at.a, p.a.data, p.a.rs, ld(p.a), p.a.cs == 1, p.stored[0], one_term),
                 missing_lines(at.b, p.b.data, p.b.cs, ld(p.b), p.b.cs != 1, p.stored[1], one_term),
                 p.k,
                 at.k_blocks,
                 static_cast<unsigned>(a_groups),
                 static_cast<unsigned>(a_groups + b_groups),
                 static_cast<unsigned>(at.b_panel / SPLIT_LINES),
                 product.bound.small,
                 product.bound.large,
                 product.bound.level,
                 product.bound.second_scale,
                 std::nextafter(1 / float(p.k), 1.0f),
                 double(p.m) * double(p.n) <= 0x1p20,
                 product.previous,
                 at.statuses + 32,
                 product.expectation.expected && product.expectation.beside,
                 product.expectation.words_of_two};
  if (!plan.words_of_two) return plan;
  const RangeBound of_two = two_terms_bound(p);
  const int more_room = p.k > RangeBound::ONE_PIECE ? GUESS_HEADROOM<Bf16Terms> - GUESS_HEADROOM<Fp16Terms> : 0;
  plan.larger_for_three = Bf16Terms::TOP - Fp16Terms::TOP - more_room;
  const float times = ldexpf(1, plan.larger_for_three);
  plan.small_of_two = of_two.small * times, plan.level = of_two.level;
  // In bf16 no more than in fp16, and no less: both round.
  plan.large_of_two = of_two.large * times * 0.99f, plan.sure_of_two = of_two.large * times * 1.01f;
  return plan;
}

// With k in segments, of which there may be one.
inline SplitSegments in_segments(const SplitPlan& split, SegmentRecord* records) {
  const unsigned segments = split_segments(split.groups, split.k);
  return {split, segments, records, records + split.groups * segments};
}

// Blocks of 1024 threads, one on a multiprocessor: for three terms of few lines, and for a k whose segments would be
// short, since those take a second launch: at k = 4096 normal data of 384 to 1024 rows take 0.91 to 0.99 of the time,
// but those of 256 1.13. Two terms with shorter k lose, 1.05 to 1.08 at 2048 with up to 640 rows (H100).
constexpr unsigned FEWEST_WIDE_GROUPS = 40;
constexpr int64_t LEAST_K_OF_LONG_SEGMENTS = 12 * SPLIT_PIECE;

// One launch for what is not prepacked. As a fallback it is of few blocks, which have little to do if not needed.
template <class S>
void launch_split(const AccurateProduct& product) {
  const SgemmArgs& p = product.p;
  const ProductOperands& at = product.at;
  const Context& ctx = product.ctx;
  const SplitSegments cut = in_segments(split_plan(product), at.records);
  const SplitPlan& split = cut.split;
  if (split.groups == 0) return;
  const auto multiprocessors = static_cast<unsigned>(ctx.sm_count), few = 2 * multiprocessors;
  const unsigned blocks = product.previous && split.groups > few ? few : split.groups;
  const auto launch_all = [&](auto unswizzled, auto halves) {
    constexpr bool UNSWIZZLED = decltype(unswizzled)::value;
    constexpr int HALVES = decltype(halves)::value;
    const bool is_long = p.k > RangeBound::ONE_PIECE;
    if constexpr (HALVES == 0) {
      const bool wide = cut.segments > 1 ? split.groups >= FEWEST_WIDE_GROUPS : S::COUNT == 3;
      if (wide && p.k < LEAST_K_OF_LONG_SEGMENTS && 2 * split.groups <= S::COUNT * multiprocessors) {
        const LaunchShape shape{blocks, WideSplit::THREADS};
        if constexpr (S::COUNT == 3)
          if (!is_long) return launch_kernel<operand_split_kernel<S, false, WideSplit, 1, false, 0>>(shape, ctx, split);
        return launch_kernel<operand_split_kernel<S, true, WideSplit, 1, UNSWIZZLED, 0>>(shape, ctx, split);
      }
    }
    if (cut.segments > 1) {
      const LaunchShape all{split.groups * cut.segments, LongSplit::THREADS};
      launch_kernel<split_segments_kernel<S, UNSWIZZLED, HALVES>>(all, ctx, cut);
      return launch_kernel<finish_segments_kernel<S>>(all, ctx, cut);
    }
    if (is_long)
      return launch_kernel<operand_split_kernel<S, true, LongSplit, 2, UNSWIZZLED, HALVES>>(
          {blocks, LongSplit::THREADS}, ctx, split);
    launch_kernel<operand_split_kernel<S, false, ShortSplit, 2, UNSWIZZLED, HALVES>>({blocks, ShortSplit::THREADS}, ctx,
                                                                                     split);
  };
  const auto launch_stored = [&](auto unswizzled) {
    if (!any_in_16_bits(p.stored)) return launch_all(unswizzled, std::integral_constant<int, 0>{});
    if constexpr (S::COUNT == 2) {
      if (p.stored[1].in_16_bits()) launch_all(unswizzled, std::integral_constant<int, 2>{});
      else launch_all(unswizzled, std::integral_constant<int, 1>{});
    } else launch_kernel<split_by_tile_kernel<S>>({blocks, LongSplit::THREADS}, ctx, split);
  };
  if constexpr (S::COUNT == 2)
    if (at.b_panel != TERM_BLOCK) return launch_stored(std::true_type{});
  launch_stored(std::false_type{});
}

}  // namespace fl
