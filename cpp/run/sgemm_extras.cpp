#include "run/sgemm_extras.h"

#include <cmath>

#include "core/normalise.h"
#include "plan/accurate/range_bound.h"
#include "plan/accurate/wgmma_plan.h"
#include "plan/strict/pipelined_plan.h"
#include "run/constant_operands.h"
#include "table/prepacked.h"

namespace fl {
namespace {

// Who computed a product by a kernel with these terms, in words, from the first two words of the workspace; the second
// counts if the product has bf16x6 as a fallback.
std::string accurate_answer(Terms terms, bool bf16x6_fallback, const SgemmArgs& p, const unsigned* statuses) {
  const std::string last = p.batch > 1 ? " (the last of the batch)" : "";
  const bool two = terms == Terms::fp16x2;
  if (!(statuses[0] & (STATUS_REJECTED | STATUS_DONE))) return (two ? "two fp16 terms" : "three bf16 terms") + last;
  const bool three = bf16x6_fallback && !(statuses[1] & STATUS_REJECTED);
  const unsigned found = statuses[statuses[0] & STATUS_DONE ? 1 : 0];
  const std::string why = found & STATUS_NOT_FINITE ? "NaN or infinite numbers" : "the range of the operands";
  return (three ? "three bf16 terms" : "plain float32") + (" because of " + why) + last;
}

}  // namespace

bool takes_triangle(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args) {
  if (!args.symmetric || !kernel.traits.triangle) return false;
  if (!kernel.traits.strict) return computes_triangle(args);
  if (on_cuda(kernel.needs) && args.k < TRIANGLE_LEAST_K) return false;
  return !kernel.depth || kernel.depth(args) >= args.k;
}

bool make_strict(SgemmArgs& p) {
  if (p.precision != Precision::accurate) return false;
  p.precision = Precision::strict;
  return true;
}

bool answers_later(const Chosen<SgemmArgs>& chosen, const CallOptions& options) {
  return options.log && options.log_choice && std::isfinite(chosen.args.alpha) &&
         chosen.kernel->traits.terms != Terms::none;
}

void log_answer(const Chosen<SgemmArgs>& chosen, int device, const CallOptions& options, const unsigned* statuses) {
  const Kernel<SgemmArgs>& kernel = *chosen.kernel;
  const bool bf16x6_fallback =
      kernel.traits.bf16x6_behind &&
      (kernel.traits.wgmma ? falls_back_to_three_terms(chosen.args) : has_bf16x6_fallback(chosen.args));
  (*options.log)("cuda:" + std::to_string(device) + " " + kernel.name + ", computed by " +
                 accurate_answer(kernel.traits.terms, bf16x6_fallback, chosen.args, statuses));
}

SgemmArgs with_constant_operand(SgemmArgs args, const CallOptions& options) {
  if (options.constant_operand) options.constant_operand->replace_by_copy(args);
  return args;
}

bool run_on_constant_operand(const Launch<SgemmArgs>& launch, const CallOptions& options) {
  return options.constant_operand &&
         options.constant_operand->run(*launch.kernel, launch.args, launch.ordinal, options.stream);
}

PrepackedOperands operands_to_prepack(const Chosen<SgemmArgs>& chosen, const SgemmArgs& given,
                                      const CallOptions& options) {
  PrepackedOperands prepacked;
  if (!options.constant) return prepacked;
  const bool is_a = (*options.constant == Side::a) != swaps_operands(given);
  (is_a ? prepacked.a : prepacked.b) = prepacked_to_keep(*chosen.kernel, chosen.args, is_a ? Side::a : Side::b);
  return prepacked;
}

bool constant_moves(const SgemmArgs& before, const SgemmArgs& now, const CallOptions& options) {
  if (!options.constant) return false;
  return *options.constant == Side::a ? before.a != now.a : before.b != now.b;
}

}  // namespace fl
