// What steps of the SGEMM ladder and their rows in the table have to agree on.
#pragma once

#include <cstddef>

#include "core/problem.h"
#include "plan/reference_device.h"

namespace fl {

// stream_k has tiles of 128 x 256. For each block that it may have: the sums of a tile, and a flag. Nothing where there
// are fewer tiles than blocks.
inline constexpr int64_t STREAM_K_BLOCKS = PLAN_MULTIPROCESSORS;
inline std::size_t stream_k_step_bytes(const SgemmArgs& p) {
  constexpr int64_t BM = 128, BN = 256;
  if (p.batch != 1 || (p.m / BM) * (p.n / BN) < STREAM_K_BLOCKS) return 0;
  return std::size_t(STREAM_K_BLOCKS) * (BM * BN * sizeof(float) + sizeof(unsigned));
}

// slice_k: four groups of warps take lines of k in turn, in steps of 32, and then add their sums.
inline int64_t slice_k_depth(const SgemmArgs& p) { return ceil_div(p.k, 32) * 8 + 3; }

}  // namespace fl
