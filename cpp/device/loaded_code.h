// Which of the code in this library a CUDA device runs. A binary holds code for several targets, and the driver takes
// one of them for all kernels: machine code for the device, else PTX, which it compiles. A kernel is there only if the
// code that was taken has its body; what the hardware could run says nothing about that.
#pragma once

#include <string_view>

#include "table/registry.h"

namespace fl {

struct LoadedCode {
  int target = 0;         // compute capability that it was compiled for, 10 * major + minor; 0: there is none
  bool features = false;  // with the instructions that one capability alone has: sm_90a, not sm_90
  bool operator==(const LoadedCode&) const = default;
};

// What the driver reads from the environment when CUDA is initialised.
struct JitSettings {
  bool only_ptx = false;  // CUDA_FORCE_PTX_JIT: machine code is passed over
  bool no_ptx = false;    // CUDA_DISABLE_PTX_JIT
};
JitSettings jit_settings();

// What the driver is expected to take of a build for `architectures`, a list as in CMAKE_CUDA_ARCHITECTURES with spaces
// between its entries, on a device of that compute capability.
FL_EXPORT LoadedCode expected_code(std::string_view architectures, int compute_capability, JitSettings jit);

// Whether the body of such a row is part of the code.
bool has_body(Needs needs, LoadedCode code);

}  // namespace fl
