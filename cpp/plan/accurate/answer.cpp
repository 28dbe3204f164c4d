#include "plan/accurate/answer.h"

#include "plan/accurate/range_bound.h"

namespace fl {

std::string accurate_answer(Terms terms, bool bf16x6_fallback, const SgemmArgs& p, const unsigned* statuses) {
  const std::string last = p.batch > 1 ? " (the last of the batch)" : "";
  const bool two = terms == Terms::fp16x2;
  if (!(statuses[0] & STATUS_REJECTED)) return (two ? "two fp16 terms" : "three bf16 terms") + last;
  const bool three = bf16x6_fallback && !(statuses[1] & STATUS_REJECTED);
  const std::string why = statuses[0] & STATUS_NOT_FINITE ? "NaN or infinite numbers" : "the range of the operands";
  return (three ? "three bf16 terms" : "plain float32") + (" because of " + why) + last;
}

}  // namespace fl
