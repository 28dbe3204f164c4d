// How long a tall-skinny product takes on the GPU.
#pragma once

#include "core/problem.h"

namespace fl {

double tall_skinny_cost(const SgemmArgs& p);

}  // namespace fl
