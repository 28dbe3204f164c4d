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

// Of k cut into `splits` ranges of whole steps of 32, whose sums meet in memory (sum_splits.cuh). GROUPS of warps share
// a range step by step, or each of its steps line by line.
int64_t cut_chain(int64_t k, int64_t groups, bool line_by_line, int64_t splits);
// The fewest ranges that keep such a chain within the limit, if at most `most` can.
int64_t fewest_splits(const SgemmArgs& p, int64_t groups, bool line_by_line, int64_t most);

inline int64_t one_chain(const SgemmArgs& p) { return p.k; }
inline int64_t promoted_chain(const SgemmArgs& p) { return ceil_div(p.k, 64); }  // to float32, every 64 k
template <int GROUPS, int BLOCKS>                                                // of a cluster, which shares k
int64_t shared_chain(const SgemmArgs& p) {
  return cut_chain(ceil_div(p.k, BLOCKS), GROUPS, false, 1) + BLOCKS - 1;
}

// Every warp of a cluster has a slice of k. Where there is a limit, it adds up runs of SLICE_RUN k (simt_warps.cuh).
constexpr int64_t SLICE_RUN = 64;
constexpr int64_t slice_of(int64_t k, int64_t slices) { return ceil_div(ceil_div(k, 16), slices) * 16; }
inline bool in_runs(const SgemmArgs& p, int64_t slices) {
  return slice_of(p.k, slices) > SLICE_RUN && longest_chain(p) != any_length;
}
template <int WARPS, int BLOCKS>
int64_t slices_chain(const SgemmArgs& p) {
  const int64_t slice = slice_of(p.k, WARPS * BLOCKS);
  return (in_runs(p, WARPS * BLOCKS) ? SLICE_RUN + ceil_div(slice, SLICE_RUN) - 1 : slice) + WARPS + BLOCKS - 2;
}

}  // namespace fl
