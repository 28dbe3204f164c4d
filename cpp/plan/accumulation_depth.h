// How deep the sums of a product are, and how deep those of an accurate one may be.
//
// The accumulation depth is the most float32 additions that one product goes through on its way into its sum. The norm
// of the error grows with its root, whatever computes it: on normal data it is 1.8e-8 sqrt(depth), for 24 shapes by
// each kernel that takes them (docs/accuracy.md). Each row of the table says how deep its sums are, and dispatch keeps
// to a limit.
#pragma once

#include <cstdint>
#include <limits>

#include "core/problem.h"

namespace fl {

constexpr int64_t any_depth = std::numeric_limits<int64_t>::max();

// What dispatch allows: where cuBLAS cuts k, about what cuBLAS has. Any depth unless the product is accurate.
//
// On normal data cuBLAS (CUDA 13.0, H200) has the norm of depth k / 64 + 68 at 256 x 256, and of larger ones at
// most smaller sizes. Beyond, up to 2^17 outputs, it has k / 32 to k / 7, and what is fastest there has smaller ones
// anyhow. With the lower limit six of 200 random products lost a tenth to a sixth of their speed (docs/accuracy.md).
inline int64_t deepest_allowed(const SgemmArgs& p) {
  constexpr int64_t most_outputs = 1 << 17;
  if (p.precision != Precision::accurate || p.k < 4096 || p.m * p.n * p.batch > most_outputs) return any_depth;
  return p.m <= 256 && p.n <= 256 ? p.k / 64 + 76 : p.k / 16 + 64;
}
constexpr int64_t deepest_allowed(const SgemvArgs&) { return any_depth; }
constexpr int64_t deepest_allowed(const TransposeArgs&) { return any_depth; }

inline int64_t sequential_depth(const SgemmArgs& p) { return p.k; }
inline int64_t promoted_depth(const SgemmArgs& p) { return ceil_div(p.k, 64); }  // to float32, every 64 k

}  // namespace fl
