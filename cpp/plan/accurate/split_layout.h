// How terms lie in memory, and how the split pass is cut up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "plan/reference_device.h"
#include "plan/terms.h"

namespace fl {

// A term holds 64 x 64 blocks of 2-byte numbers: 64 lines (rows of A, columns of B) by 64 k. The terms of a block lie
// side by side, and the blocks of the same 64 lines, a panel, one after the other along k.
constexpr int TERM_BLOCK = 64, TERM_ROW_BYTES = 64 * 2, TERM_BYTES = 64 * TERM_ROW_BYTES;
// Lines that a block of threads of the split pass takes; it reports on their range in one word.
constexpr int SPLIT_LINES = 16;
// The bound of docs/accuracy.md holds from k = 64 on, but short sums of positive numbers are more accurate in plain
// float32: below this k the fallback runs. Above the other the counters of the split pass are too narrow.
constexpr int64_t TERMS_SMALLEST_K = 256, TERMS_LARGEST_K = int64_t{1} << 20;
constexpr bool terms_fit(int64_t k) { return k >= TERMS_SMALLEST_K && k <= TERMS_LARGEST_K; }

// What the split pass leaves of one operand: the word of the range check for each 16 lines, the exponent of each line,
// the terms of each panel of lines. Offsets and size.
struct SplitLayout {
  int64_t panel_lines;     // 64, or 96 columns of B for tiles that have as many
  int64_t panels, groups;  // the latter of 16 lines
  std::size_t exponents, terms, panel_bytes, bytes;

  constexpr SplitLayout(int64_t lines, int64_t k, Terms kind, int64_t lines_of_a_panel = TERM_BLOCK)
      : panel_lines(lines_of_a_panel),
        panels(ceil_div(lines, panel_lines)),
        groups(ceil_div(lines, SPLIT_LINES)),
        exponents(aligned(std::size_t(groups) * sizeof(unsigned))),
        // A tile of the product may reach three panels past the last one. What it reads there goes nowhere.
        terms(aligned(exponents + std::size_t((panels + 3) * panel_lines) * sizeof(int))),
        panel_bytes(std::size_t(ceil_div(k, TERM_BLOCK) * term_count(kind) * panel_lines) * TERM_ROW_BYTES),
        bytes(terms + std::size_t(panels + 3) * panel_bytes) {}

 private:
  static constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
};

// Up to here tiles may have 96 columns. Their panels of B have as many.
constexpr int64_t LARGEST_N_OF_96 = 4096;

// Few lines that are long: blocks of their own split segments of their k (split/segments.cuh). Two blocks at a time fit
// on a multiprocessor, and there are enough for two waves. From some hundred blocks of 16 lines on memory is busy
// without. Terms, exponents and range words are the same with and without segments.
constexpr int64_t SPLIT_PIECE = 512, SEGMENT_BLOCKS = 4 * PLAN_MULTIPROCESSORS, MOST_SEGMENTS = 8,
                  MOST_SEGMENTED_GROUPS = 100;
constexpr int split_segments(int64_t groups, int64_t k) {
  const int64_t pieces = ceil_div(k, SPLIT_PIECE);
  if (groups < 1 || groups > MOST_SEGMENTED_GROUPS || pieces < 8) return 1;
  // A second wave is long only where segments are.
  const int64_t blocks = pieces < 32 ? SEGMENT_BLOCKS / 2 : SEGMENT_BLOCKS;
  return int(std::min({blocks / groups, pieces / 2, MOST_SEGMENTS}));
}
// What the block of a segment has found of its 16 lines.
struct SegmentRecord {
  unsigned largest[SPLIT_LINES], large_count[SPLIT_LINES], quarters[SPLIT_LINES], flags, arrived;
};
constexpr std::size_t SEGMENT_RECORD_BYTES =
    (SEGMENT_BLOCKS + MOST_SEGMENTED_GROUPS) * sizeof(SegmentRecord) / 256 * 256 + 256;

}  // namespace fl
