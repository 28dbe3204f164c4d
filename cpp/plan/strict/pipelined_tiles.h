// Tiles whose blocks have copying and multiplying warps with a pipeline between them (pipelined.cuh).
#pragma once

#include "plan/reproducible_block.h"
#include "plan/strict/tile_rules.h"

namespace fl {

// What a kernel asks of a device: all that Hopper has; asynchronous copies and barriers in shared memory; neither.
enum class PipelinedFor { hopper, sm_80, any };

// Four warps copy, eight multiply, and a pipeline of `stages` lies between them.
struct PipelinedTile {
  int BM, BN, BK, TM, TN;
  int warps_m, warps_n;              // of a group: down and across its tile
  int k_groups = 1;                  // sliced-K: groups of warps, each of which takes every k_groups-th step
  int cluster_k = 1;                 // blocks of a cluster, each of which takes a range of k
  int stages;                        // a step of A and B each
  int producers = 1;                 // groups of copying warps, each of which fills every producers-th stage
  bool split_k = false;              // blocks may take ranges of k and store their sums in memory
  bool stream_k = false;             // the tiles of a last wave that is not full may be shared out evenly
  bool tma_variant = false;          // there is a kernel for full tiles alone, to which B comes by TMA
  int tma_step = 0, tma_stages = 0;  // its BK and stages where they are others
  int wide_stages = 0;               // of one more TMA variant, half as high and twice as wide; 0: there is none
  bool triangle = false;  // there are kernels for a matrix times its own transpose, for tiles below the diagonal
  int lane_rows = 8;      // of a warp's 32 lanes, how many stand one below the other
  bool tma = false;       // this is a TMA variant
  PipelinedFor level = PipelinedFor::hopper;
  bool in_blocks = false;  // the sum of each block of k is added to C by itself: precision="reproducible"
  bool keeps_c = false;    // in_blocks: from block to block C's tile stays in shared memory

  static constexpr int PRODUCER_THREADS = 128, MATH_THREADS = 256;

  constexpr int lane_cols() const { return 32 / lane_rows; }
  // Whether a group comes to a stage that another one read in the last round.
  constexpr bool groups_change_stages() const { return stages % k_groups != 0; }
  constexpr int group_threads() const { return 32 * warps_m * warps_n; }
  constexpr int math_threads() const { return group_threads() * k_groups; }
  constexpr int threads() const { return math_threads() + PRODUCER_THREADS; }
  // A persistent block goes from tile to tile; every output is one chain of FMAs in ascending k.
  constexpr bool persistent() const { return k_groups == 1 && cluster_k == 1; }
  // Whether the groups' sums of a tile are added at its end, in the place of the stages.
  constexpr bool adds_groups() const { return k_groups > 1 && !in_blocks; }

  // Shared memory in bytes: the stages, or in their place the groups' sums; what a cluster's blocks send each other;
  // two barriers a stage; what is kept of C.
  constexpr int a_bytes() const { return padded_bytes(BK, BM); }
  constexpr int b_row() const { return tma ? BN : padded_row(BN); }  // floats; what TMA writes has no padding
  constexpr int stage_bytes() const { return a_bytes() + BK * b_row() * 4; }
  constexpr int tile_bytes() const { return BM * BN * 4; }
  constexpr int group_sums_bytes() const { return adds_groups() ? k_groups * tile_bytes() : 0; }
  constexpr int inbox() const { return stages * stage_bytes(); }
  constexpr int barriers() const { return inbox() + (cluster_k > 1 ? tile_bytes() : 0); }
  constexpr int block_steps() const { return static_cast<int>(REPRODUCIBLE_BLOCK) / BK; }  // of a block of k
  constexpr bool block_per_group() const { return in_blocks && k_groups > 1; }
  // A barrier for each warp whose sums wait for those of others.
  constexpr int turns() const { return barriers() + stages * 16; }
  constexpr bool stages_go_on() const { return persistent() || in_blocks; }
  constexpr int kept_c() const { return turns() + (block_per_group() ? math_threads() / 32 * 8 : 0); }
  constexpr int shared_bytes() const { return kept_c() + (keeps_c ? tile_bytes() : 0); }
  constexpr int room() const {
    return level == PipelinedFor::hopper  ? BLOCK_SHARED
           : level == PipelinedFor::sm_80 ? SMALLEST_BLOCK_SHARED
                                          : capability(75).shared_per_block;
  }

  // For precision="reproducible", whose order leaves no range of k to other blocks of the grid.
  constexpr PipelinedTile for_blocks() const {
    PipelinedTile tile = *this;
    tile.in_blocks = true, tile.split_k = false, tile.triangle = false, tile.producers = k_groups;
    return tile;
  }
  // What is left of shared memory beside C has room for fewer stages, or shorter ones.
  constexpr PipelinedTile that_keeps_c(int step, int fewer_stages, int fewer_wide_stages = 0) const {
    PipelinedTile tile = *this;
    tile.keeps_c = true, tile.BK = step, tile.stages = fewer_stages, tile.wide_stages = fewer_wide_stages;
    return tile;
  }
  // The TMA variant in other steps.
  constexpr PipelinedTile tma_in(int step, int other_stages) const {
    PipelinedTile tile = *this;
    tile.tma_step = step, tile.tma_stages = other_stages;
    return tile;
  }
  // The variants for full tiles.
  constexpr PipelinedTile tma_tile() const {
    PipelinedTile tile = *this;
    tile.tma = true, tile.tma_variant = false, tile.wide_stages = 0, tile.triangle = false;
    if (tma_step > 0) tile.BK = tma_step, tile.stages = tma_stages;
    return tile;
  }
  // Half as much of A is there to be transposed, by copies of 4 bytes, and what the copying warps issue is lost for the
  // others. The same bits.
  constexpr PipelinedTile wide_tma_tile() const {
    PipelinedTile tile = tma_tile();
    tile.BM /= 2, tile.BN *= 2, tile.stages = wide_stages, tile.lane_rows = 4;
    return tile;
  }

  consteval bool sound() const {
    if (BM != warps_m * lane_rows * TM || BN != warps_n * lane_cols() * TN)
      throw "the outputs of all lanes and warps of a group are the block's BM x BN";
    if (TM % 4 != 0 || TN % 4 != 0) throw "a thread's rows and columns come in fours";
    if (BK % 8 != 0 || (BK % 16 != 0 && (BM % 64 != 0 || BN % 64 != 0)))
      throw "a step along k is whole lines of every group, and whole rounds of copies";
    if (math_threads() != MATH_THREADS) throw "eight warps multiply";
    if (shared_bytes() > room()) throw "the blocks meant for a multiprocessor have room there, and no more";
    if (group_sums_bytes() > inbox()) throw "the sums fit in the place of the pipeline";
    if (stages < k_groups || stages < producers) throw "every group and every producer has a stage";
    // A barrier's parity tells this round of the pipeline from the last one, not from the one before that. So whoever
    // waits at a barrier of a stage must know by what it did before that the last round has begun there. A producer and
    // a group that always comes to the same stages filled it or read it then. A group that comes to others asks first
    // whether the stage has been read in the last round, and may ask that because it has since read one that the same
    // producer filled later, when that was done with the round before. It has to ask, as boxes do not arrive in the
    // order in which they are fetched (tests/kernels/pipeline_rounds.cpp).
    if (stages % producers != 0 || (k_groups % producers != 0 && stages % k_groups != 0))
      throw "a stage belongs to one producer, and each group can tell its rounds";
    if (producers > 1 && persistent()) throw "a persistent kernel has one producer";
    if (split_k && cluster_k > 1) throw "k is split over the grid or over a cluster, not both";
    if (stream_k && !persistent()) throw "stream-K shares out the tiles of a persistent kernel";
    const bool part_of_k = cluster_k > 1 || split_k || REPRODUCIBLE_BLOCK % BK != 0;
    const bool share_stages = producers != k_groups || groups_change_stages();
    if (in_blocks ? part_of_k || share_stages || (k_groups > 1 && !keeps_c) : keeps_c)
      throw "a block has all of k, in whole steps of each block of it; groups share C and no stages";
    if ((tma || tma_variant) && level != PipelinedFor::hopper)
      throw "TMA is Hopper's, and needs whole swizzles in a stage";
    if (triangle && (!persistent() || BN % BM != 0))
      throw "squares on the diagonal are whole tiles of a persistent kernel";
    // Without barriers in shared memory a stage takes four of the 16 that a block has.
    const bool no_room = level == PipelinedFor::any && (k_groups > 1 || 4 * stages > 15);
    if ((level != PipelinedFor::hopper && cluster_k > 1) || no_room)
      throw "before Hopper there are no clusters, and before 8.0 no groups along k";
    if (tma_variant) tma_tile().sound();
    if (wide_stages > 0) wide_tma_tile().sound();
    return true;
  }
  constexpr TileName name() const {
    const char* const suffix = level == PipelinedFor::hopper ? "" : level == PipelinedFor::sm_80 ? "p" : "r";
    const char* const family = in_blocks ? "reproducible_" : "strict_";
    return TileName(BM, BN, family).shared("k", k_groups).shared("c", cluster_k).text(suffix);
  }
};

// clang-format off
// As many rows and columns as the registers of a multiprocessor allow; one block on each.
inline constexpr PipelinedTile strict_128x256{
    .BM = 128, .BN = 256, .BK = 32, .TM = 8, .TN = 16, .warps_m = 2, .warps_n = 4,
    .stages = 4, .stream_k = true, .tma_variant = true, .triangle = true};
inline constexpr PipelinedTile strict_192x192{
    .BM = 192, .BN = 192, .BK = 32, .TM = 12, .TN = 12, .warps_m = 2, .warps_n = 4,
    .stages = 4, .triangle = true};
inline constexpr PipelinedTile strict_128x128{
    .BM = 128, .BN = 128, .BK = 32, .TM = 8, .TN = 8, .warps_m = 2, .warps_n = 4,
    .stages = 6, .split_k = true, .stream_k = true, .triangle = true};

// Small enough to give every multiprocessor one from 500 to 1500 rows and columns.
inline constexpr PipelinedTile strict_64x64k4c2{
    .BM = 64, .BN = 64, .BK = 32, .TM = 8, .TN = 8, .warps_m = 1, .warps_n = 2,
    .k_groups = 4, .cluster_k = 2, .stages = 12, .tma_variant = true, .wide_stages = 6};
inline constexpr PipelinedTile strict_96x96k4c2{
    .BM = 96, .BN = 96, .BK = 32, .TM = 12, .TN = 12, .warps_m = 1, .warps_n = 2,
    .k_groups = 4, .cluster_k = 2, .stages = 6, .producers = 2, .tma_variant = true, .wide_stages = 6};
inline constexpr PipelinedTile strict_64x128k4{
    .BM = 64, .BN = 128, .BK = 32, .TM = 8, .TN = 16, .warps_m = 1, .warps_n = 2,
    .k_groups = 4, .stages = 9, .split_k = true, .tma_variant = true, .wide_stages = 6};
inline constexpr PipelinedTile strict_96x192k2{
    .BM = 96, .BN = 192, .BK = 32, .TM = 12, .TN = 12, .warps_m = 1, .warps_n = 4,
    .k_groups = 2, .stages = 6, .split_k = true, .tma_variant = true};

// Before Hopper: 168 registers to every thread, and 99 KiB of shared memory.
inline constexpr PipelinedTile strict_128x192p{
    .BM = 128, .BN = 192, .BK = 24, .TM = 8, .TN = 12, .warps_m = 2, .warps_n = 4,
    .stages = 3, .stream_k = true, .level = PipelinedFor::sm_80};
inline constexpr PipelinedTile strict_128x128p{
    .BM = 128, .BN = 128, .BK = 32, .TM = 8, .TN = 8, .warps_m = 2, .warps_n = 4,
    .stages = 2, .split_k = true, .stream_k = true, .level = PipelinedFor::sm_80};
inline constexpr PipelinedTile strict_64x128k2p{
    .BM = 64, .BN = 128, .BK = 32, .TM = 8, .TN = 8, .warps_m = 1, .warps_n = 4,
    .k_groups = 2, .stages = 3, .split_k = true, .level = PipelinedFor::sm_80};
// Any GPU: 64 KiB.
inline constexpr PipelinedTile strict_128x192r{
    .BM = 128, .BN = 192, .BK = 16, .TM = 8, .TN = 12, .warps_m = 2, .warps_n = 4,
    .stages = 2, .stream_k = true, .level = PipelinedFor::any};
inline constexpr PipelinedTile strict_128x128r{
    .BM = 128, .BN = 128, .BK = 16, .TM = 8, .TN = 8, .warps_m = 2, .warps_n = 4,
    .stages = 3, .split_k = true, .stream_k = true, .level = PipelinedFor::any};

// precision="reproducible", sgemm_reproducible_large.cu. Steps of 24 do not divide its blocks of k.
inline constexpr PipelinedTile reproducible_128x256 = strict_128x256.for_blocks().that_keeps_c(16, 3).tma_in(32, 2);
inline constexpr PipelinedTile reproducible_128x128 = strict_128x128.for_blocks().that_keeps_c(32, 4);
// A block of k for each group of warps.
inline constexpr PipelinedTile reproducible_64x128k4 = strict_64x128k4.for_blocks().that_keeps_c(16, 12, 8);
inline constexpr PipelinedTile reproducible_96x192k2 = strict_96x192k2.for_blocks().that_keeps_c(32, 4);
inline constexpr PipelinedTile reproducible_128x192p = [] {
  PipelinedTile tile = strict_128x192p.for_blocks();
  tile.BK = 32, tile.stages = 2;
  return tile;
}();
inline constexpr PipelinedTile reproducible_128x128p = strict_128x128p.for_blocks();
inline constexpr PipelinedTile reproducible_128x192r = strict_128x192r.for_blocks();
inline constexpr PipelinedTile reproducible_128x128r = strict_128x128r.for_blocks();
// clang-format on

// The tiles that are kernels, by the file that compiles them.
// clang-format off
// sgemm_strict_large.cu
#define FL_LARGE_TILES(DO) DO(strict_128x128) DO(strict_128x256) DO(strict_192x192)
// sgemm_strict_medium.cu
#define FL_MEDIUM_TILES(DO) DO(strict_64x64k4c2) DO(strict_96x96k4c2) DO(strict_64x128k4) DO(strict_96x192k2)
// sgemm_strict_before_hopper.cu
#define FL_BEFORE_HOPPER_TILES(DO) DO(strict_128x192p) DO(strict_128x128p) DO(strict_64x128k2p) DO(strict_128x192r) \
    DO(strict_128x128r)
// sgemm_reproducible_large.cu
#define FL_REPRODUCIBLE_TILES(DO) DO(reproducible_128x256) DO(reproducible_128x128) DO(reproducible_96x192k2) \
    DO(reproducible_64x128k4)
// sgemm_reproducible_before_hopper.cu
#define FL_REPRODUCIBLE_BEFORE_HOPPER_TILES(DO) DO(reproducible_128x192p) DO(reproducible_128x128p) \
    DO(reproducible_128x192r) DO(reproducible_128x128r)
// clang-format on

}  // namespace fl
