// What the tiles of the strict SGEMM kernels have in common: the shared memory that there is, their names and rules. A
// tile is one object in the header of its family (pipelined_, cluster_, multistage_ and warp_tiles.h): legality,
// workspace, the order of sums, costs, launches and the kernels themselves take their numbers from it.
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

// Where a warp stages results for rows of C that are not aligned: 8 rows of 16 floats, and padding.
constexpr int STAGING_BYTES = padded_bytes(8, 16);

// Which rule a tile breaks; must_be_sound() has them in words.
enum class TileFault {
  none,
  cover,
  fours,
  step,
  threads,
  shared_memory,
  reduction,
  stages,
  rounds,
  persistent,
  split_twice,
  stream_k,
  in_blocks,
  tma,
  triangle,
  level
};

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

// The rules in words.
// To be called with every tile that a kernel is made for.
template <auto TILE>
consteval bool must_be_sound() {
  constexpr TileFault fault = TILE.fault();
  static_assert(fault != TileFault::cover, "the outputs of all lanes and warps of a group are the block's BM x BN");
  static_assert(fault != TileFault::fours, "a thread's rows and columns come in fours: TM and TN are multiples of 4");
  static_assert(fault != TileFault::step, "a step along k is whole lines of every group, and whole rounds of copies");
  static_assert(fault != TileFault::threads, "eight warps multiply");
  static_assert(fault != TileFault::shared_memory,
                "the blocks meant for a multiprocessor have room there, and no more");
  static_assert(fault != TileFault::reduction, "the sums, and staging for C, fit in the place of the pipeline");
  static_assert(fault != TileFault::stages, "every group and every producer has a stage");
  static_assert(fault != TileFault::rounds, "a stage belongs to one producer, and each group can tell its rounds");
  static_assert(fault != TileFault::persistent, "a persistent kernel has one producer");
  static_assert(fault != TileFault::split_twice, "k is split over the grid or over a cluster, not both");
  static_assert(fault != TileFault::stream_k, "stream-K shares out the tiles of a persistent kernel");
  static_assert(fault != TileFault::in_blocks,
                "a block has all of k, in whole steps of each block of it; groups share C and no stages");
  static_assert(fault != TileFault::level, "before Hopper there are no clusters, and before 8.0 no groups along k");
  static_assert(fault != TileFault::tma, "TMA is Hopper's, and needs whole swizzles in a stage");
  static_assert(fault != TileFault::triangle, "squares on the diagonal are whole tiles of a persistent kernel");
  return fault == TileFault::none;
}

}  // namespace fl
