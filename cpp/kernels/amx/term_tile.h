// The innermost product: 32 x 32 of C in four tile registers while a slice of k runs, six products of terms for each 32
// k. Tiles 0 to 3 are C, row by row, 4 and 5 halves of the strip of A, 6 and 7 of B.
//
// A product takes its unit for 16 cycles and its result is there after 52: four sums are under way. From one product of
// terms to the next only one operand changes, so of 24 tiles of A and B 14 are loaded, between the products that use
// what is there. Small products come first and hi * hi last, so a sum takes their errors on early.
#pragma once

#include <stdint.h>

#include "plan/cpu_blocking.h"

namespace fl {
namespace {

template <class Tiles, bool LowRows, bool RightColumns>
class TermTile {
  static constexpr int64_t tile_bytes = 1024, line = 64;
  enum Term { hi, mid, lo };

 public:
  // Strips of A and B without their headers.
  static void run(Tiles& tiles, const float* a, const float* b, int64_t steps) {
    TermTile tile{tiles, reinterpret_cast<const char*>(a), reinterpret_cast<const char*>(b)};
    tiles.template zero<0>();
    if (RightColumns) tiles.template zero<1>();
    if (LowRows) tiles.template zero<2>();
    if (LowRows && RightColumns) tiles.template zero<3>();
    for (int64_t s = 0; s < steps; ++s, tile.a_ += 6 * tile_bytes, tile.b_ += 6 * tile_bytes) tile.step();
  }

 private:
  TermTile(Tiles& tiles, const char* a, const char* b) : tiles_(tiles), a_(a), b_(b) {}

  template <int half>
  void load_a(Term term) {
    if (half == 0 || LowRows) tiles_.template load<4 + half>(a_ + (2 * term + half) * tile_bytes, line);
  }
  template <int half>
  void load_b(Term term) {
    if (half == 0 || RightColumns) tiles_.template load<6 + half>(b_ + (2 * term + half) * tile_bytes, line);
  }
  template <int row, int column>
  void multiply() {
    if ((row == 0 || LowRows) && (column == 0 || RightColumns))
      tiles_.template multiply<2 * row + column, 4 + row, 6 + column>();
  }
  // All four with what is loaded; then each half of an operand is free as soon as both products with it are begun.
  void next_a(Term term) {
    multiply<0, 0>(), multiply<0, 1>();
    load_a<0>(term);
    multiply<1, 0>(), multiply<1, 1>();
    load_a<1>(term);
  }
  void next_b(Term term) {
    multiply<0, 0>(), multiply<1, 0>();
    load_b<0>(term);
    multiply<0, 1>(), multiply<1, 1>();
    load_b<1>(term);
  }
  void step() {
    load_a<0>(lo), load_b<0>(hi), load_b<1>(hi), load_a<1>(lo);
    next_a(mid);
    next_b(mid);
    next_a(hi);
    next_b(lo);
    next_b(hi);
    multiply<0, 0>(), multiply<0, 1>(), multiply<1, 0>(), multiply<1, 1>();
  }

  Tiles& tiles_;
  const char *a_, *b_;
};

}  // namespace
}  // namespace fl
