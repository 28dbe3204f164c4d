#include "plan/triangle_cut.h"

#include <algorithm>
#include <cmath>

namespace fl {
namespace {

int64_t widest_group(const TriangleCut& cut) {
  int64_t widest = 0;
  for (int64_t g = 0; g < cut.groups; ++g) widest = std::max(widest, cut.begin(g + 1) - cut.begin(g));
  return widest;
}

TriangleCut cut_of(const SgemmArgs& p, const CpuBlocking& blocking, int64_t panels, int64_t groups) {
  const int64_t side = panels * blocking.NR;
  return {.side = side, .squares = ceil_div(p.m, side), .groups = groups};
}

// Panels in the side of a square whose rows fit the block of A that a thread keeps in L2, about.
int64_t most_panels(const CpuBlocking& blocking) {
  return std::max<int64_t>(1, (blocking.MC + blocking.NR / 2) / blocking.NR);
}

// Clock cycles of a call on all threads.
double time_of(const SgemmArgs& p, const CpuBlocking& blocking, const TriangleCut& cut, int threads) {
  const double n = double(p.n), depth = double(p.k), side = double(cut.side), batch = double(p.batch);
  const double groups = double(cut.groups), squares = double(cut.squares);
  // Strips are the smaller the less whole ones a square has.
  const double strips = double(ceil_div(cut.side, blocking.MR));
  const double rows = strips * double(blocking.MR) / side;
  const double beyond = double(blocking.MR + blocking.NR) / 2;  // columns of a tile that crosses the diagonal
  const double products = depth * n * (n / 2 + beyond) / 16 * (1 + 0.3 * (rows - 1));
  const double a_packs = depth * side * pack_cycles * squares * (cut.groups == 1 ? 1.0 : groups * 2 / 3);
  const double share = groups * batch / threads;
  const bool uneven = cut.groups * p.batch % threads != 0;
  const double packs = std::max(share, 1.0) + (uneven ? 1.0 : 0.0);
  const double last = depth * side * (0.5 * n / std::sqrt(groups) / 16 + pack_cycles) + 500;
  return batch * (products + a_packs) / threads + packs * pack_cycles_of(int64_t(n / groups), p, blocking) + 0.5 * last;
}

}  // namespace

int64_t TriangleCut::begin(int64_t group) const {
  if (group >= groups) return squares;
  // What is right of it has (groups - group) of `groups` parts of the area.
  const double rest = std::sqrt(double(groups - group) / double(groups));
  return std::min(squares, int64_t(double(squares) * (1 - rest) + 0.5));
}

TriangleCut triangle_cut(const SgemmArgs& p, const CpuBlocking& blocking, int threads) {
  const int64_t most = most_panels(blocking);
  const TriangleCut whole = cut_of(p, blocking, most, 1);
  if (threads < 2 || p.batch >= 4 * threads || double(p.m) * double(p.n) * double(p.k) / 2 * double(p.batch) < 5e5)
    return whole;
  TriangleCut best = whole;
  double best_time = 1e300;
  for (int64_t panels = most; panels >= 1; panels = panels == 1 ? 0 : ceil_div(panels, 2))
    for (int64_t groups = 1; groups <= std::min(ceil_div(p.n, panels * blocking.NR), 4 * threads / p.batch + 1);
         ++groups) {
      TriangleCut cut = cut_of(p, blocking, panels, groups);
      cut.shared = true;
      cut.keep = widest_group(cut) * cut.side * p.k <= most_kept(threads);
      const double time = time_of(p, blocking, cut, threads) * (cut.keep ? 1 : 1.1);
      if (time < best_time) best = cut, best_time = time;
    }
  return best;
}

int64_t columns_at_once(const CpuBlocking& blocking, const TriangleCut& cut) {
  return std::max<int64_t>(1, blocking.NC / cut.side) * cut.side;
}

PackLayout pack_layout(const SgemmArgs& p, const CpuBlocking& blocking, const TriangleCut& cut) {
  const int64_t depth = std::min(blocking.KC, p.k), columns = widest_group(cut) * cut.side;
  const int64_t b_floats = cut.keep ? columns * p.k : std::min(columns_at_once(blocking, cut), columns) * depth;
  return pack_layout(cut.shared ? cut.groups * p.batch : 0, std::min(cut.side, p.m) * depth, b_floats);
}

}  // namespace fl
