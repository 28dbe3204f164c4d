// The innermost product: 32 x 32 of C in four tile registers while a slice of k runs, six products of terms for each 32
// k. Tiles 0 to 3 are C, row by row, 4 and 5 halves of the strip of A, 6 and 7 of B.
//
// A product takes its unit for 16 cycles and its result is there after 52: four sums are under way. From one product of
// terms to the next only one operand changes, so of 24 tiles of A and B 14 are loaded, between the products that use
// what is there. Small products come first and hi * hi last, so a sum takes their errors on early. Loads from L2 would
// keep the unit waiting, so with each tile that of the next step is fetched to L1.
#pragma once

#include <stdint.h>

#include "pack_terms.h"

namespace fl {
namespace {

template <class Tiles, class S, bool LowRows, bool RightColumns>
class TermTile {
  static constexpr int64_t tile_bytes = 1024, line = 64;
  enum Term { hi, mid, lo };

 public:
  // Strips of A and B without their headers. Of what `packer` has to do, sixteen or 32 pairs are done in each step.
  template <class Fetch>
  static void run(Tiles& tiles, const float* a, const float* b, int64_t steps, TermPacker<S>& packer, bool hurry,
                  Fetch&& fetch) {
    TermTile tile{tiles, reinterpret_cast<const char*>(a), reinterpret_cast<const char*>(b)};
    tiles.template zero<0>();
    if (RightColumns) tiles.template zero<1>();
    if (LowRows) tiles.template zero<2>();
    if (LowRows && RightColumns) tiles.template zero<3>();
    for (int64_t s = 0; s < steps; ++s, tile.a_ += 6 * tile_bytes, tile.b_ += 6 * tile_bytes) {
      fetch();
      if (hurry && packer.has(32)) tile.template step<2>(packer);
      else if (packer.has(16)) tile.template step<1>(packer);
      else tile.template step<0>(packer);
    }
  }

 private:
  TermTile(Tiles& tiles, const char* a, const char* b) : tiles_(tiles), a_(a), b_(b) {}

  template <int half>
  inline __attribute__((always_inline)) void load_a(Term term) {
    if (half == 0 || LowRows) load<4 + half>(a_ + (2 * term + half) * tile_bytes, true);
  }
  // `last` of this step: the first terms are loaded twice.
  template <int half>
  inline __attribute__((always_inline)) void load_b(Term term, bool last = true) {
    if (half == 0 || RightColumns) load<6 + half>(b_ + (2 * term + half) * tile_bytes, last);
  }
  template <int tile>
  inline __attribute__((always_inline)) void load(const char* from, bool last) {
    tiles_.template load<tile>(from, line);
    if (!last) return;
    for (int i = 0; i < tile_bytes / line; ++i) __builtin_prefetch(from + 6 * tile_bytes + i * line, 0, 3);
  }
  template <int row, int column>
  inline __attribute__((always_inline)) void multiply() {
    if ((row == 0 || LowRows) && (column == 0 || RightColumns))
      tiles_.template multiply<2 * row + column, 4 + row, 6 + column>();
  }
  // All four with what is loaded; then each half of an operand is free as soon as both products with it are begun.
  template <class Between>
  inline __attribute__((always_inline)) void next_a(Term term, Between&& between) {
    multiply<0, 0>(), between(0), multiply<0, 1>();
    load_a<0>(term);
    between(1), multiply<1, 0>(), between(2), multiply<1, 1>();
    load_a<1>(term);
  }
  template <class Between>
  inline __attribute__((always_inline)) void next_b(Term term, Between&& between) {
    multiply<0, 0>(), between(0), multiply<1, 0>();
    load_b<0>(term);
    between(1), multiply<0, 1>(), between(2), multiply<1, 1>();
    load_b<1>(term);
  }
  // With so many times sixteen pairs packed, between the products.
  template <int halves>
  void step(TermPacker<S>& packer) {
    TermPairs<S> pairs;
    if (halves) pairs = packer.take();
    const auto three = [&](int) __attribute__((always_inline)) {
      for (int h = 0; h < halves; ++h) pairs.next();
    };
    const auto two = [&](int place) __attribute__((always_inline)) {
      if (place < 2) three(place);
    };
    load_a<0>(lo), load_b<0>(hi, false), load_b<1>(hi, false), load_a<1>(lo);
    next_a(mid, three);
    next_b(mid, three);
    next_a(hi, two);
    next_b(lo, three);
    next_b(hi, three);
    multiply<0, 0>(), two(0), multiply<0, 1>(), two(1), multiply<1, 0>(), multiply<1, 1>();
    if (halves) packer.put_back(pairs, 16 * halves);
  }

  Tiles& tiles_;
  const char *a_, *b_;
};

}  // namespace
}  // namespace fl
