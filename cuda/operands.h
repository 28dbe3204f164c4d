// The operands of a call on host memory, in the terms of transfer.h.
#pragma once

#include <array>

#include "pack.h"
#include "problem.h"

namespace fl::cuda {

struct Input {
  Lines<const float> host;
  const float** device = nullptr;  // the pointer in the device arguments
};
struct Output {
  Lines<float> host;
  float** device = nullptr;
  bool read = false;  // beta != 0: goes to the device too
};
struct Operands {
  std::array<Input, 2> inputs;  // the second is empty for a transpose
  Output output;
};

// `layout` is device_layout(host); the result points into it, for the caller to fill in the device pointers.
Operands operands(const SgemmArgs& host, SgemmArgs& layout);
Operands operands(const SgemvArgs& host, SgemvArgs& layout);
Operands operands(const TransposeArgs& host, TransposeArgs& layout);

}  // namespace fl::cuda
