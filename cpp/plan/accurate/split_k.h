// Split-K: few tiles and a long k, so that blocks take parts of the k of a tile and leave their sums in the workspace.
// The cut is part of the specification of the result's bits, so it depends on the call alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/accurate/split_layout.h"

namespace fl {

constexpr int ACCURATE_SPLIT_K_TILE = 128;
struct AccurateSplitK {
  int count = 1;             // 1: k is not cut
  int64_t rows = 0, ld = 0;  // of the sums of a part, whole tiles
  double rounds_area = 0, ends = 0;
  constexpr std::size_t bytes() const { return count == 1 ? 0 : std::size_t(count * rows * ld) * sizeof(float); }
};

// `whole_us` is what whole tiles take, and tiles reach `rate` of so many operations of a multiprocessor in a us.
constexpr AccurateSplitK fastest_split_k(int64_t m, int64_t n, int64_t k, double whole_us, double operations_per_us,
                                         double rate) {
  constexpr int64_t multiprocessors = PLAN_MULTIPROCESSORS, tile = ACCURATE_SPLIT_K_TILE;
  const int64_t down = ceil_div(m, tile), across = ceil_div(n, tile), tiles = down * across;
  AccurateSplitK best{1, down * tile, across * tile};
  if (tiles > multiprocessors || k < 4096) return best;
  double least = whole_us;
  for (int64_t waves = 1; waves <= 2; ++waves) {
    const int64_t room = waves * multiprocessors / tiles, most = k / (4 * TERM_BLOCK),
                  count = room < most ? room : most;
    if (count < 2) continue;
    const double rounds = double(ceil_div(tiles * count, multiprocessors));
    const double area = rounds * tile * tile / (double(count) * rate);
    const double ends = 3 * rounds + 2.6 + double(count) * double(best.rows * best.ld) * 4 / 3e6;
    const double time = area * 2 * double(k) / operations_per_us + ends;
    if (time < least) least = time, best.count = int(count), best.rounds_area = area, best.ends = ends;
  }
  return best;
}

}  // namespace fl
