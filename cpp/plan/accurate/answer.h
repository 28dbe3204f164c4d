// What the log says of an accurate product.
#pragma once

#include <string>

#include "core/problem.h"
#include "plan/terms.h"

namespace fl {

// Who computed a product by a kernel with these terms, in words, from the first two words of the workspace; the second
// counts if the product has bf16x6 as a fallback.
std::string accurate_answer(Terms terms, bool bf16x6_fallback, const SgemmArgs& p, const unsigned* statuses);

}  // namespace fl
