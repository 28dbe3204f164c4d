// How long the sums of a product are, and how long those of an accurate one may be.
//
// A chain is the most float32 additions that one product goes through on its way into its sum. The norm of the error
// grows with its root, whatever computes it: on normal data it is 1.8e-8 sqrt(chain), for 24 shapes by each row that
// takes them (docs/accuracy.md). Each row of the table says how long its chains are, and dispatch keeps to a limit.
#pragma once

#include <cstdint>
#include <limits>

#include "core/export.h"
#include "core/problem.h"

namespace fl {

constexpr int64_t any_length = std::numeric_limits<int64_t>::max();

// What dispatch allows: where cuBLAS cuts k, about what cuBLAS has. Any length unless the product is accurate.
FL_EXPORT int64_t longest_chain(const SgemmArgs& p);
constexpr int64_t longest_chain(const SgemvArgs&) { return any_length; }
constexpr int64_t longest_chain(const TransposeArgs&) { return any_length; }

inline int64_t one_chain(const SgemmArgs& p) { return p.k; }
inline int64_t promoted_chain(const SgemmArgs& p) { return ceil_div(p.k, 64); }  // to float32, every 64 k

}  // namespace fl
