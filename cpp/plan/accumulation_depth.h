// How deep the sums of a product are, and how deep those of an accurate one may be.
//
// The accumulation depth is the most float32 additions that one product goes through on its way into its sum. The norm
// of the error grows with its root, whatever computes it: on normal data it is 1.8e-8 sqrt(depth), for 24 shapes by
// each kernel that takes them (docs/accuracy.md). Each row of the table says how deep its sums are, and dispatch keeps
// to a limit.
#pragma once

#include <cstdint>
#include <limits>

#include "core/export.h"
#include "core/problem.h"

namespace fl {

constexpr int64_t any_depth = std::numeric_limits<int64_t>::max();

// What dispatch allows: where cuBLAS cuts k, about what cuBLAS has. Any depth unless the product is accurate.
FL_EXPORT int64_t deepest_allowed(const SgemmArgs& p);
constexpr int64_t deepest_allowed(const SgemvArgs&) { return any_depth; }
constexpr int64_t deepest_allowed(const TransposeArgs&) { return any_depth; }

inline int64_t sequential_depth(const SgemmArgs& p) { return p.k; }
inline int64_t promoted_depth(const SgemmArgs& p) { return ceil_div(p.k, 64); }  // to float32, every 64 k

}  // namespace fl
