// What the tiles of the strict SGEMM kernels have in common: the shared memory that there is, their names and rules. A
// tile is one object in the header of its family (pipelined_, cluster_, multistage_ and warp_tiles.h): legality,
// workspace, the order of sums, costs, launches and the kernels themselves take their numbers from it. A kernel is made
// for no tile that is not sound(): the compiler then shows the rule that it breaks.
// docs/sgemm_strict.md explains the designs.
//
// BM x BN outputs belong to a block, TM x TN of them to a thread; BK is a step along k.
#pragma once

#include <cstdint>

#include "core/device_spec.h"

namespace fl {

// Shared memory in bytes of Hopper: of a multiprocessor, what the system takes of it for every block, and what a block
// may have. Tiles for other devices too ask for no more than any of these gives a block; fewer blocks than are meant
// for a multiprocessor may have room there.
inline constexpr int SM_SHARED = capability(90).shared_per_sm, SYSTEM_SHARED = KiB,
                     BLOCK_SHARED = capability(90).shared_per_block;
inline constexpr int SMALLEST_BLOCK_SHARED = capability(86).shared_per_block;  // from 8.0 on
static_assert(SMALLEST_BLOCK_SHARED <= capability(80).shared_per_block &&
              SMALLEST_BLOCK_SHARED <= capability(89).shared_per_block &&
              SMALLEST_BLOCK_SHARED <= capability(120).shared_per_block);

// What an operand's tile takes in shared memory: rows of `length` floats, each followed by four of padding.
constexpr int padded_row(int length) { return length + 4; }
constexpr int padded_bytes(int rows, int length) { return rows * padded_row(length) * 4; }

// The name that the grammar in table/kernels.def gives a tile.
class TileName {
 public:
  constexpr TileName(int BM, int BN, const char* family = "strict_") { text(family).number(BM).text("x").number(BN); }
  // A letter and how many share k there, if more than one does.
  constexpr TileName& shared(const char* letter, int by) { return by > 1 ? text(letter).number(by) : *this; }
  constexpr TileName& text(const char* more) {
    while (*more) name_[length_++] = *more++;
    return *this;
  }
  constexpr bool is(const char* other) const {
    for (const char c : name_) {
      if (c != *other++) return false;
      if (c == 0) break;
    }
    return true;
  }

 private:
  char name_[32] = {};
  unsigned length_ = 0;
  constexpr TileName& number(int value) {
    if (value > 9) number(value / 10);
    name_[length_++] = static_cast<char>('0' + value % 10);
    return *this;
  }
};

}  // namespace fl
