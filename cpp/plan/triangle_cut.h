// How a symmetric product C = A A^T is cut: what is computed, what is mirrored, and how threads share it.
#pragma once

#include <cstdint>

#include "plan/cpu_blocking.h"

namespace fl {

// C is a grid of squares; those of the last row and column may be smaller. The squares on the diagonal and below it are
// computed, and mirrored by the thread that has computed them, so that no element has two writers. Groups of columns of
// squares are of about the same area, so they widen from left to right. The threads take the squares of a group by
// rows, from the lowest up: these reach all columns of the group, so that all of B is packed for the first ones.
struct TriangleCut {
  int64_t side = 0;                    // of a square, a multiple of NR
  int64_t squares = 0;                 // in a row of C
  int64_t groups = 1;                  // of columns
  bool shared = false;                 // several threads may work on a group; otherwise each takes whole products
  bool keep = false;                   // a thread keeps the whole B of its group packed
  int64_t begin(int64_t group) const;  // the first square of a group; of `groups`, one behind the last
};
TriangleCut triangle_cut(const SgemmArgs& p, const CpuBlocking& blocking, int threads);
PackLayout pack_layout(const SgemmArgs& p, const CpuBlocking& blocking, const TriangleCut& cut);

// Columns of B whose packed slices of k a thread has at once if it does not keep all of them: whole squares.
int64_t columns_at_once(const CpuBlocking& blocking, const TriangleCut& cut);

}  // namespace fl
