// Which calls the kernels of precision="accurate" can compute, and what they are expected to take, in microseconds.
#pragma once

#include "core/problem.h"

namespace fl {

const char* accurate_only(const SgemmArgs& p);
double fp16x2_cost(const SgemmArgs& p);
double bf16x6_cost(const SgemmArgs& p);
double fp16x2_mma_cost(const SgemmArgs& p);

}  // namespace fl
