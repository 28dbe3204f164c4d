// Tiles of a warp each, and tiles for a short k.
#pragma once

#include "plan/strict/tile_rules.h"

namespace fl {

// ---------------------------------------------------------------- a warp to a tile (sgemm_strict_warp_tiles.cu)
struct WarpTile {
  int BM, BN, BK;
  int stages;      // of a warp
  int warps;       // of a block, each with a tile of its own
  int blocks = 3;  // on a multiprocessor at a time

  constexpr int TM() const { return BM / 8; }
  constexpr int TN() const { return BN / 4; }
  constexpr int threads() const { return 32 * warps; }
  constexpr int warps_per_sm() const { return warps * blocks; }
  constexpr int stage_bytes() const { return padded_bytes(BM, BK) + padded_bytes(BK, BN); }
  constexpr int pipeline_bytes() const { return stages * stage_bytes(); }
  // By way of registers, where copies are not asynchronous, one stage is enough.
  constexpr int shared_bytes(bool async) const { return warps * (async ? pipeline_bytes() : stage_bytes()); }

  consteval bool sound() const {
    if (BM % 8 != 0 || BN % 16 != 0) throw "the outputs of all lanes and warps of a group are the block's BM x BN";
    if (BK % 4 != 0) throw "a step along k is whole lines of every group, and whole rounds of copies";
    const bool fits_75 = shared_bytes(false) <= capability(75).shared_per_block;
    if (shared_bytes(true) > SMALLEST_BLOCK_SHARED || blocks * (shared_bytes(true) + SYSTEM_SHARED) > SM_SHARED ||
        !fits_75)
      throw "the blocks meant for a multiprocessor have room there, and no more";
    return true;
  }
  constexpr TileName name() const { return TileName(BM, BN).text("w"); }
};

inline constexpr WarpTile strict_16x16w{.BM = 16, .BN = 16, .BK = 16, .stages = 3, .warps = 8};

// precision="reproducible", sgemm_reproducible_warps.cu: four warps of a block have the same tile, each a block of k at
// a time, whose sums meet in shared memory behind the pipelines.
inline constexpr WarpTile reproducible_48x32k4{.BM = 48, .BN = 32, .BK = 16, .stages = 2, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_32x16k4{.BM = 32, .BN = 16, .BK = 32, .stages = 3, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_16x16k4{.BM = 16, .BN = 16, .BK = 32, .stages = 4, .warps = 4, .blocks = 2};
// The same where each warp leaves the sums of its block in memory (slabs_of_warps.cuh).
inline constexpr WarpTile reproducible_64x32w{.BM = 64, .BN = 32, .BK = 16, .stages = 2, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_16x16w = reproducible_16x16k4;
constexpr int sums_bytes(const WarpTile& tile) { return tile.warps * padded_bytes(tile.BM, tile.BN); }

// ---------------------------------------------------------------- short k (sgemm_strict_short_k.cu)
// A warp owns TM rows of a tile; its lanes stand side by side along n. One kernel with three tiles.
struct ShortKTile {
  int BM, BN;
  int TM = 8;
  int stages;
  int blocks;  // on a multiprocessor at a time

  static constexpr int BK = 32;
  constexpr int TN() const { return BN / 32; }
  constexpr int threads() const { return 32 * (BM / TM); }
  constexpr int stage_bytes() const { return padded_bytes(BK, BM) + padded_bytes(BK, BN); }
  constexpr int shared_bytes() const { return stages * stage_bytes(); }

  consteval bool sound() const {
    if (BM % TM != 0 || BN % 32 != 0) throw "the outputs of all lanes and warps of a group are the block's BM x BN";
    if (blocks * (shared_bytes() + SYSTEM_SHARED) > SM_SHARED || shared_bytes() > SMALLEST_BLOCK_SHARED)
      throw "the blocks meant for a multiprocessor have room there, and no more";
    return true;
  }
};

inline constexpr ShortKTile short_k_large{.BM = 64, .BN = 128, .stages = 2, .blocks = 4};
inline constexpr ShortKTile short_k_square{.BM = 64, .BN = 64, .TM = 16, .stages = 2, .blocks = 5};
inline constexpr ShortKTile short_k_few{.BM = 32, .BN = 64, .stages = 4, .blocks = 4};

// The tiles that are kernels, by the file that compiles them.
// clang-format off
// sgemm_reproducible_warps.cu
#define FL_REPRODUCIBLE_WARP_TILES(DO) DO(reproducible_48x32k4) DO(reproducible_32x16k4) DO(reproducible_16x16k4)
// clang-format on

}  // namespace fl
