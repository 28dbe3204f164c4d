// One product of a batch as its kernels are launched: its operands as terms, the range check and the epilogue. Each
// launch begins while the one before it ends.
#pragma once

#include <algorithm>
#include <array>  // std::size(), too: nvcc would read <iterator> for half a second
#include <cmath>
#include <utility>

#include "core/context.h"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "cuda/kernels/sgemm_accurate/range_check.cuh"
#include "plan/accurate/epilogue.h"
#include "plan/accurate/wgmma_plan.h"
#include "plan/accurate/workspace.h"
#include "plan/prepacked_operand.h"

namespace fl {

// One problem of a batch.
inline SgemmArgs problem_of(const SgemmArgs& p, int64_t i) {
  SgemmArgs one = p;
  one.batch = 1;
  one.a.data += i * p.a.bs, one.b.data += i * p.b.bs, one.c.data += i * p.c.bs;
  if (p.addend.data) one.addend.data += i * p.addend.bs;
  return one;
}

// Float32 FMA where `status` rejects the terms, and always if it is null (fallback/).
void launch_float32_fallback(const SgemmArgs& p, const unsigned* status, const Context& ctx);

// Calls multiply(problem, context) for each problem of a batch, with its prepacked operands. A batch is a loop: the
// problems that come here are large enough, and the workspace stays that of one. Calls with a small k, and those with
// an alpha that is NaN or infinite, run in float32 alone.
template <class Multiply>
void multiply_by_terms(const SgemmArgs& p, const Context& ctx, Multiply&& multiply) {
  if (!terms_fit(p.k) || !std::isfinite(p.alpha)) return launch_float32_fallback(p, nullptr, ctx);
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
  int64_t groups;  // of 16 lines
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
        a(view(p.m, p.k, kind, plan.a, ctx, plan.a_begin, ctx.prepacked ? &ctx.prepacked->a : nullptr)),
        b(view(p.n, p.k, kind, plan.b, ctx, plan.b_begin, ctx.prepacked ? &ctx.prepacked->b : nullptr)),
        statuses(static_cast<unsigned*>(ctx.workspace)),
        records(reinterpret_cast<SegmentRecord*>(static_cast<char*>(ctx.workspace) + plan.segments_begin)),
        sums(reinterpret_cast<float*>(static_cast<char*>(ctx.workspace) + plan.sums_begin)) {
    if (kind != Terms::fp16x2) return;
    auto* const words = reinterpret_cast<unsigned*>(static_cast<char*>(ctx.workspace) + plan.words_begin);
    if (!ctx.prepacked || !ctx.prepacked->a.memory) a.words = words;
    if (!ctx.prepacked || !ctx.prepacked->b.memory) b.words = words + a.groups;
  }

 private:
  static SplitView view(int64_t lines, int64_t k, Terms kind, const SplitLayout& own, const Context& ctx,
                        std::size_t begin, const PrepackedOperand* prepacked) {
    if (!prepacked || !prepacked->memory) return {own, static_cast<char*>(ctx.workspace) + begin, lines};
    const SplitLayout layout = prepacked->shared ? SplitLayout(prepacked->lines, k, kind) : own;
    return {layout, prepacked->memory, lines, prepacked->first, prepacked->missing};
  }
};

// What the last product of the same operands has left. Where two terms were rejected, three are computed before them,
// in launches of their own.
struct SplitPlan;
struct Expectation {
  unsigned* rejected = nullptr;      // in memory of the host, 0 or 1: whether two terms were rejected
  bool expected = false;             // that is 1
  bool beside = false;               // the split pass of two terms works beside the product of three
  unsigned* words_of_two = nullptr;  // of the range check, where both operands are split
  // The split pass of two terms, where three make it themselves unless two are rejected for certain.
  const SplitPlan* split_of_two = nullptr;

  // What three terms have left for two, behind them.
  const unsigned* previous(const unsigned* statuses) const { return words_of_two ? statuses + 2 : nullptr; }
};

struct AccurateProduct {
  const SgemmArgs& p;
  const ProductOperands& at;
  const RangeBound& bound;
  const unsigned* previous;  // the status of the terms that were tried before these, if any
  unsigned* status;
  bool last;  // these terms have no other fallback than float32
  const Context& ctx;
  // Of how many operands in 16 bits second terms, which are zero, are left out.
  int left_out = 0;
  Expectation expectation = {};

  RangeCheck range_check() const {
    return {at.a.words,
            at.b.words,
            int(at.a.groups),
            int(at.a.groups + at.b.groups),
            bound.octaves,
            status,
            previous,
            bound.small_if_tall,
            expectation.expected ? expectation.rejected : nullptr,
            expectation.words_of_two,
            expectation.words_of_two ? two_terms_bound(p).octaves : 0};
  }
  AccurateEpilogue epilogue() const {
    const ConstMatrix addend = addend_of(p);
    return {
        at.a.exponents, at.b.exponents, p.c.data, ld(p.c), {addend.data, addend.rs, addend.cs, allows_vectors(addend)},
        int(p.m),       int(p.n),       p.alpha,  p.beta,  p.m * p.n <= int64_t{1} << 22,
        p.c.cs != 1};
  }
};

// Calls launch<TILE>(), which returns whether the float32 fallback is in the same kernel, for one of a list of tiles.
template <const auto& TILES, class Launch>
bool launch_tile(int index, Launch&& launch) {
  bool falls_back = false;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((int(I) == index ? void(falls_back = launch.template operator()<TILES[I]>()) : void()), ...);
  }(std::make_index_sequence<std::size(TILES)>{});
  return falls_back;
}

// ---------------------------------------------------------------- launches, each compiled once
// The split pass of what is not prepacked (split/).
template <class S>
void launch_split(const AccurateProduct& product);
extern template void launch_split<Fp16Terms>(const AccurateProduct&);
extern template void launch_split<Bf16Terms>(const AccurateProduct&);

// The float32 fallback over parts of k.
void launch_split_k_fallback(const SgemmArgs& p, const unsigned* status, const SplitKSums& to, const Context& ctx);
// Split-K: what follows the kernel that stores the sums of parts, with the float32 fallback or without.
void launch_split_k_sums(const AccurateProduct& product, const AccurateSplitK& split_k, bool falls_back);

}  // namespace fl
