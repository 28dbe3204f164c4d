// Weights of torch models whose splits stay while they do not change (python/fastlinalg/torch/_weights.py).
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "bindings/arrays/dlpack.h"
#include "run/constant_operands.h"

namespace fl::py {

namespace nb = nanobind;

// The factor of a @ b that is a weight, or a view of one, and has not changed since it was a factor last. Null if there
// is none, and if `weights` is None.
std::shared_ptr<ConstantOperand> constant_operand(nb::handle weights, const dl::Tensor& a, const dl::Tensor& b);

}  // namespace fl::py
