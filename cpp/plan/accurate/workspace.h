// The workspace of an accurate product: statuses, range words of two terms, records of segments, the terms of A and B,
// sums of split-K. What fp16x2 rejects goes to bf16x6 in the same place; only the statuses, one for each, outlive that,
// and the range words, which some blocks may still read while others split into three terms. Where it is expected that
// it will be rejected, bf16x6 comes first, in memory of its own.
#pragma once

#include "plan/accurate/range_bound.h"
#include "plan/accurate/split_k.h"

namespace fl {

constexpr std::size_t RANGE_WORDS_BEGIN = 256;

struct AccuratePlan {
  int64_t k_blocks;
  SplitLayout a, b;
  std::size_t words_begin, segments_begin, a_begin, b_begin, sums_begin, bytes;

  constexpr AccuratePlan(const SgemmArgs& p, Terms kind, int64_t columns_of_a_panel = TERM_BLOCK,
                         const AccurateSplitK& split_k = {})
      : k_blocks(ceil_div(p.k, TERM_BLOCK)),
        a(p.m, p.k, kind),
        b(p.n, p.k, kind, columns_of_a_panel),
        words_begin(RANGE_WORDS_BEGIN),
        segments_begin(words_begin + (a.groups + b.groups + 63) / 64 * 256),
        a_begin(segments_begin + (p.k > RangeBound::ONE_PIECE ? SEGMENT_RECORD_BYTES : 0)),
        b_begin(a_begin + a.bytes),
        sums_begin(b_begin + b.bytes),
        bytes(sums_begin + split_k.bytes()) {}
};

std::size_t fp16x2_workspace(const SgemmArgs& p);
std::size_t own_fp16x2_workspace(const SgemmArgs& p);  // without that of a fallback
std::size_t bf16x6_workspace(const SgemmArgs& p);
std::size_t fp16x2_mma_workspace(const SgemmArgs& p);
std::size_t fp16x2_mma_k8_workspace(const SgemmArgs& p);
std::size_t bf16x6_mma_workspace(const SgemmArgs& p);

}  // namespace fl
