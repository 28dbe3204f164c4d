#include "plan/chains.h"

namespace fl {

// On normal data cuBLAS (CUDA 13.0, H200) has the norm of chains of k / 64 + 68 at 256 x 256, and of longer ones at
// most smaller sizes. Beyond, up to 2^17 outputs, it has k / 32 to k / 7, and what is fastest there has shorter ones
// anyhow. With the lower limit six of 200 random products lost a tenth to a sixth of their speed (docs/accuracy.md).
int64_t longest_chain(const SgemmArgs& p) {
  constexpr int64_t most_outputs = 1 << 17;
  if (p.precision != Precision::accurate || p.k < 4096 || p.m * p.n * p.batch > most_outputs) return any_length;
  return p.m <= 256 && p.n <= 256 ? p.k / 64 + 76 : p.k / 16 + 64;
}

int64_t cut_chain(int64_t k, int64_t groups, bool line_by_line, int64_t splits) {
  const int64_t steps = ceil_div(ceil_div(k, 32), splits);
  const int64_t to_meet = splits == 1 ? 0 : splits <= 16 ? splits : ceil_div(splits, 8) + 8;
  return (line_by_line ? ceil_div(steps * 32, groups) : ceil_div(steps, groups) * 32) + groups - 1 + to_meet;
}

int64_t fewest_splits(const SgemmArgs& p, int64_t groups, bool line_by_line, int64_t most) {
  const int64_t limit = longest_chain(p);
  if (limit == any_length) return 1;
  int64_t splits = ceil_div(p.k, groups * limit);
  while (splits < most && cut_chain(p.k, groups, line_by_line, splits) > limit) ++splits;
  return splits < most ? splits : most;
}

}  // namespace fl
