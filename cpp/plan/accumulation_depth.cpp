#include "plan/accumulation_depth.h"

namespace fl {

// On normal data cuBLAS (CUDA 13.0, H200) has the norm of depth k / 64 + 68 at 256 x 256, and of larger ones at
// most smaller sizes. Beyond, up to 2^17 outputs, it has k / 32 to k / 7, and what is fastest there has smaller ones
// anyhow. With the lower limit six of 200 random products lost a tenth to a sixth of their speed (docs/accuracy.md).
int64_t deepest_allowed(const SgemmArgs& p) {
  constexpr int64_t most_outputs = 1 << 17;
  if (p.precision != Precision::accurate || p.k < 4096 || p.m * p.n * p.batch > most_outputs) return any_depth;
  return p.m <= 256 && p.n <= 256 ? p.k / 64 + 76 : p.k / 16 + 64;
}

}  // namespace fl
