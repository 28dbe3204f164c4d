// The tiles of the strict SGEMM kernels, each once: legality, workspace, the order of sums, costs, launches
// and the kernels themselves take their numbers from these objects. To add a tile: an object here, its row in
// table/kernels.def, its function in cuda/kernels/sgemm_strict/. docs/sgemm_strict.md explains the designs.
//
// BM x BN outputs belong to a block, TM x TN of them to a thread; BK is a step along k.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/device_spec.h"
#include "plan/reproducible_plan.h"

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

// ---------------------------------------------------------------- pipelined (pipelined.cuh)
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
  bool split_k = false;              // blocks may take ranges of k and leave their sums in memory
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
  // two barriers a stage. Staging for C lies behind all that where stages are filled meanwhile, and else behind the
  // groups' sums; then comes what is kept of C.
  constexpr int a_bytes() const { return padded_bytes(BK, BM); }
  constexpr int b_row() const { return tma ? BN : padded_row(BN); }  // floats; what TMA writes has no padding
  constexpr int stage_bytes() const { return a_bytes() + BK * b_row() * 4; }
  constexpr int tile_bytes() const { return BM * BN * 4; }
  constexpr int group_sums_bytes() const { return adds_groups() ? k_groups * tile_bytes() : 0; }
  constexpr int inbox() const {
    return stages * stage_bytes() > group_sums_bytes() ? stages * stage_bytes() : group_sums_bytes();
  }
  constexpr int barriers() const { return inbox() + (cluster_k > 1 ? tile_bytes() : 0); }
  constexpr int block_steps() const { return static_cast<int>(REPRODUCIBLE_BLOCK) / BK; }  // of a block of k
  constexpr bool block_per_group() const { return in_blocks && k_groups > 1; }
  // A barrier for each warp whose sums wait for those of others.
  constexpr int turns() const { return barriers() + stages * 16; }
  constexpr int behind_barriers() const { return turns() + (block_per_group() ? math_threads() / 32 * 8 : 0); }
  constexpr bool stages_go_on() const { return persistent() || in_blocks; }
  constexpr int staging() const { return stages_go_on() ? behind_barriers() : group_sums_bytes(); }
  constexpr int staging_bytes() const { return tma ? 0 : math_threads() / 32 * STAGING_BYTES; }
  constexpr int kept_c() const { return behind_barriers() + (stages_go_on() ? staging_bytes() : 0); }
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
  // The TMA variant, which needs no room to stage rows that are not aligned, in other steps.
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

  constexpr TileFault fault() const {
    if (BM != warps_m * lane_rows * TM || BN != warps_n * lane_cols() * TN) return TileFault::cover;
    if (TM % 4 != 0 || TN % 4 != 0) return TileFault::fours;
    if (BK % 8 != 0 || (BK % 16 != 0 && (BM % 64 != 0 || BN % 64 != 0))) return TileFault::step;
    if (math_threads() != MATH_THREADS) return TileFault::threads;
    if (shared_bytes() > room()) return TileFault::shared_memory;
    if (!stages_go_on() && group_sums_bytes() + staging_bytes() > stages * stage_bytes()) return TileFault::reduction;
    if (stages < k_groups || stages < producers) return TileFault::stages;
    // A barrier's parity tells this round of the pipeline from the last one, not from the one before that. So whoever
    // waits at a barrier of a stage must know by what it did before that the last round has begun there. A producer and
    // a group that always comes to the same stages filled it or read it then. A group that comes to others asks first
    // whether the stage has been read in the last round, and may ask that because it has since read one that the same
    // producer filled later, when that was done with the round before. It has to ask, as boxes do not arrive in the
    // order in which they are fetched (tests/kernels/pipeline_rounds.cpp).
    if (stages % producers != 0 || (k_groups % producers != 0 && stages % k_groups != 0)) return TileFault::rounds;
    if (producers > 1 && persistent()) return TileFault::persistent;
    if (split_k && cluster_k > 1) return TileFault::split_twice;
    if (stream_k && !persistent()) return TileFault::stream_k;
    if (in_blocks && (cluster_k > 1 || split_k || REPRODUCIBLE_BLOCK % BK != 0)) return TileFault::in_blocks;
    if (in_blocks && (producers != k_groups || groups_change_stages())) return TileFault::in_blocks;
    if (block_per_group() && !keeps_c) return TileFault::in_blocks;
    if (keeps_c && !in_blocks) return TileFault::in_blocks;
    if ((tma || tma_variant) && level != PipelinedFor::hopper) return TileFault::tma;
    if (triangle && (!persistent() || BN % BM != 0)) return TileFault::triangle;
    if (level != PipelinedFor::hopper && cluster_k > 1) return TileFault::level;
    // Without barriers in shared memory a stage takes four of the 16 that a block has.
    if (level == PipelinedFor::any && (k_groups > 1 || 4 * stages > 15)) return TileFault::level;
    const TileFault variant = tma_variant ? tma_tile().fault() : TileFault::none;
    return variant == TileFault::none && wide_stages > 0 ? wide_tma_tile().fault() : variant;
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

// For 17 to 100 rows or columns, and for few tiles of any other size.
inline constexpr PipelinedTile strict_64x48k8{
    .BM = 64, .BN = 48, .BK = 32, .TM = 8, .TN = 12, .warps_m = 1, .warps_n = 1,
    .k_groups = 8, .stages = 12, .producers = 4, .split_k = true};

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
inline constexpr PipelinedTile strict_32x64k8p{
    .BM = 32, .BN = 64, .BK = 16, .TM = 4, .TN = 16, .warps_m = 1, .warps_n = 1,
    .k_groups = 8, .stages = 12, .producers = 4, .split_k = true, .level = PipelinedFor::sm_80};
// Any GPU: 64 KiB.
inline constexpr PipelinedTile strict_128x192r{
    .BM = 128, .BN = 192, .BK = 16, .TM = 8, .TN = 12, .warps_m = 2, .warps_n = 4,
    .stages = 2, .stream_k = true, .level = PipelinedFor::any};
inline constexpr PipelinedTile strict_128x128r{
    .BM = 128, .BN = 128, .BK = 16, .TM = 8, .TN = 8, .warps_m = 2, .warps_n = 4,
    .stages = 3, .split_k = true, .stream_k = true, .level = PipelinedFor::any};

// precision="reproducible", sgemm_reproducible_large.cu. Steps of 24 do not divide its blocks of k.
inline constexpr PipelinedTile reproducible_128x256 = strict_128x256.for_blocks().that_keeps_c(16, 3).tma_in(32, 2);
inline constexpr PipelinedTile reproducible_192x192 = strict_192x192.for_blocks().that_keeps_c(16, 3);
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

// ---------------------------------------------------------------- a range of k for each warp (cluster_split_k.cuh)
// Each of k_groups warps of cluster_k blocks multiplies the whole tile over a range of k of its own, through a pipeline
// of its own.
struct ClusterSplitKTile {
  int BM, BN;
  int k_groups = 8, cluster_k;
  int stages = 3, tma_stages = 4;  // of a warp, and where tiles are full and come by TMA

  static constexpr int BK = 16;
  constexpr int TM() const { return BM / 8; }
  constexpr int TN() const { return BN / 4; }
  constexpr int threads() const { return 32 * k_groups; }
  constexpr int ranges() const { return k_groups * cluster_k; }
  constexpr int step() const { return BK * k_groups; }  // of a block
  constexpr int tile_bytes() const { return BM * BN * 4; }

  // Shared memory in bytes: the warps' pipelines, what blocks send each other and its barrier, and with TMA a barrier a
  // stage. A warp's sums take the place of its pipeline.
  constexpr int a_bytes(bool tma) const { return tma ? BM * BK * 4 : padded_bytes(BM, BK); }
  constexpr int b_bytes(bool tma) const { return tma ? BK * BN * 4 : padded_bytes(BK, BN); }
  constexpr int stage_bytes(bool tma) const { return a_bytes(tma) + b_bytes(tma); }
  constexpr int pipeline_bytes(bool tma) const { return (tma ? tma_stages : stages) * stage_bytes(tma); }
  constexpr int inbox(bool tma) const { return k_groups * pipeline_bytes(tma); }
  constexpr int barriers(bool tma) const { return inbox(tma) + tile_bytes() + 16; }
  constexpr int shared_bytes(bool tma) const { return barriers(tma) + (tma ? k_groups * tma_stages * 8 : 0); }

  constexpr TileFault fault() const {
    if (BM % 8 != 0 || BN % 16 != 0) return TileFault::cover;
    for (const bool tma : {false, true}) {
      // One block to a multiprocessor: with room for two, both blocks of a cluster seem to go to the same one.
      if (2 * shared_bytes(tma) <= BLOCK_SHARED || shared_bytes(tma) > BLOCK_SHARED) return TileFault::shared_memory;
      if (tile_bytes() + (tma ? 0 : STAGING_BYTES) > pipeline_bytes(tma)) return TileFault::reduction;
    }
    if (stage_bytes(true) % 1024 != 0 || a_bytes(true) % 512 != 0) return TileFault::tma;
    return TileFault::none;
  }
  constexpr TileName name() const { return TileName(BM, BN).shared("k", k_groups).shared("c", cluster_k); }
};

inline constexpr ClusterSplitKTile strict_32x32k8c4{.BM = 32, .BN = 32, .cluster_k = 4};
inline constexpr ClusterSplitKTile strict_32x32k8c2{.BM = 32, .BN = 32, .cluster_k = 2};
inline constexpr ClusterSplitKTile strict_48x32k8c4{.BM = 48, .BN = 32, .cluster_k = 4};
inline constexpr ClusterSplitKTile strict_48x48k8c2{.BM = 48, .BN = 48, .cluster_k = 2};

// ---------------------------------------------------------------- interleaved (sgemm_strict_interleaved.cu)
// Eight warps copy and multiply, in groups of which each takes every k_groups-th line of every step.
struct InterleavedTile {
  int BM, BN, TM, TN;
  int k_groups;
  int stages = 3;
  int blocks = 3;  // on a multiprocessor at a time

  static constexpr int BK = 32, THREADS = 256;
  constexpr int warps_n() const { return BN / (4 * TN); }
  constexpr int group_threads() const { return BM / (8 * TM) * warps_n() * 32; }
  constexpr int stage_bytes() const { return padded_bytes(BK, BM) + padded_bytes(BK, BN); }
  constexpr int pipeline_bytes() const { return stages * stage_bytes(); }
  constexpr int sums_bytes() const { return padded_bytes(BM, BN); }  // of a group, in the place of the pipeline
  constexpr int shared_bytes() const {
    return pipeline_bytes() > k_groups * sums_bytes() ? pipeline_bytes() : k_groups * sums_bytes();
  }

  constexpr TileFault fault() const {
    if (BM % (8 * TM) != 0 || BN % (4 * TN) != 0 || BN % 32 != 0) return TileFault::cover;
    if (TM % 4 != 0 || TN % 4 != 0) return TileFault::fours;
    if (BK % k_groups != 0) return TileFault::step;
    if (group_threads() * k_groups != THREADS) return TileFault::threads;
    if (blocks < 2 || blocks * (shared_bytes() + SYSTEM_SHARED) > SM_SHARED) return TileFault::shared_memory;
    if (shared_bytes() > SMALLEST_BLOCK_SHARED) return TileFault::shared_memory;
    return TileFault::none;
  }
  constexpr TileName name() const { return TileName(BM, BN).shared("i", k_groups); }
};

inline constexpr InterleavedTile strict_32x32i4{.BM = 32, .BN = 32, .TM = 4, .TN = 4, .k_groups = 4};
inline constexpr InterleavedTile strict_32x64i4{.BM = 32, .BN = 64, .TM = 4, .TN = 8, .k_groups = 4};
inline constexpr InterleavedTile strict_64x64i2{.BM = 64, .BN = 64, .TM = 8, .TN = 4, .k_groups = 2};
inline constexpr InterleavedTile strict_64x128i2{.BM = 64, .BN = 128, .TM = 8, .TN = 8, .k_groups = 2, .blocks = 2};

// ---------------------------------------------------------------- copies between FMAs (sgemm_strict_mixed.cu)
// Few warps to a block and several blocks to a multiprocessor. All warps copy and multiply, and each copy of a step has
// a place of its own between the FMAs. Groups take every k_groups-th line of each step, as in interleaved ones.
struct MixedTile {
  int BM, BN, BK, TM, TN;
  int k_groups;
  int stages;
  int blocks;               // on a multiprocessor at a time, as far as registers go
  bool one_buffer = false;  // of fragments

  static constexpr int K_UNIT = 16;  // ranges of k are whole ones
  constexpr int warps_n() const { return BN / (4 * TN); }
  constexpr int group_threads() const { return BM / (8 * TM) * warps_n() * 32; }
  constexpr int threads() const { return group_threads() * k_groups; }
  constexpr int stage_bytes() const { return padded_bytes(BK, BM) + padded_bytes(BK, BN); }
  constexpr int pipeline_bytes() const { return stages * stage_bytes(); }
  constexpr int sums_bytes() const { return padded_bytes(BM, BN); }  // of a group, in the place of the pipeline
  constexpr int shared_bytes() const {
    return pipeline_bytes() > k_groups * sums_bytes() ? pipeline_bytes() : k_groups * sums_bytes();
  }
  constexpr bool tall() const { return BN <= 32; }  // for few columns, and turned round for few rows

  constexpr TileFault fault() const {
    if (BM % (8 * TM) != 0 || BN % (4 * TN) != 0) return TileFault::cover;
    if (TM % 4 != 0 || TN % 4 != 0) return TileFault::fours;
    if (BK % k_groups != 0 || K_UNIT % k_groups != 0 || (!one_buffer && BK / k_groups % 2 != 0)) return TileFault::step;
    if (threads() != 128 && threads() != 256) return TileFault::threads;
    if (stages < 2) return TileFault::stages;
    if (shared_bytes() > SMALLEST_BLOCK_SHARED) return TileFault::shared_memory;
    if (blocks * (shared_bytes() + SYSTEM_SHARED) > SM_SHARED) return TileFault::shared_memory;
    return TileFault::none;
  }
  constexpr TileName name() const {
    return k_groups > 1 ? TileName(BM, BN).shared("m", k_groups) : TileName(BM, BN).text("m1");
  }
};

// clang-format off
inline constexpr MixedTile strict_64x16m4{
    .BM = 64, .BN = 16, .BK = 32, .TM = 8, .TN = 4, .k_groups = 4, .stages = 3, .blocks = 4};
inline constexpr MixedTile strict_64x32m4{
    .BM = 64, .BN = 32, .BK = 32, .TM = 8, .TN = 8, .k_groups = 4, .stages = 3, .blocks = 4, .one_buffer = true};
inline constexpr MixedTile strict_64x48m4{
    .BM = 64, .BN = 48, .BK = 32, .TM = 8, .TN = 12, .k_groups = 4, .stages = 3, .blocks = 3, .one_buffer = true};
inline constexpr MixedTile strict_64x64m4{
    .BM = 64, .BN = 64, .BK = 32, .TM = 8, .TN = 8, .k_groups = 4, .stages = 3, .blocks = 2, .one_buffer = true};
inline constexpr MixedTile strict_96x64m2{
    .BM = 96, .BN = 64, .BK = 32, .TM = 12, .TN = 8, .k_groups = 2, .stages = 3, .blocks = 3, .one_buffer = true};
inline constexpr MixedTile strict_64x128m2{
    .BM = 64, .BN = 128, .BK = 16, .TM = 8, .TN = 8, .k_groups = 2, .stages = 4, .blocks = 2};
inline constexpr MixedTile strict_64x64m1{
    .BM = 64, .BN = 64, .BK = 16, .TM = 8, .TN = 4, .k_groups = 1, .stages = 3, .blocks = 4, .one_buffer = true};
inline constexpr MixedTile strict_64x128m1{
    .BM = 64, .BN = 128, .BK = 16, .TM = 8, .TN = 8, .k_groups = 1, .stages = 3, .blocks = 4, .one_buffer = true};
// clang-format on

// ---------------------------------------------------------------- slices of a step (sgemm_strict_slices.cu)
// Eight warps to a tile. Each multiplies all of it, over a slice of every step along k. For devices without clusters:
// within the shared memory that all of them give a block, and by way of registers, with one stage, within that of 7.5.
struct SliceTile {
  int BM, BN;
  int stages;
  int blocks;  // on a multiprocessor at a time, as far as registers go

  static constexpr int BK = 64, K_GROUPS = 8, THREADS = 32 * K_GROUPS;
  constexpr int TM() const { return BM / 8; }
  constexpr int TN() const { return BN / 4; }
  constexpr int stage_bytes() const { return padded_bytes(BM, BK) + padded_bytes(BK, BN); }
  constexpr int sums_rows() const { return 4; }  // of a thread, how many the groups add up at a time
  constexpr int sums_bytes() const { return padded_bytes(8 * sums_rows(), BN); }  // of a group
  constexpr int shared_bytes(bool async) const {
    const int pipeline = (async ? stages : 1) * stage_bytes(), sums = K_GROUPS * sums_bytes();
    return pipeline > sums ? pipeline : sums;
  }

  constexpr TileFault fault() const {
    if (BM % 32 != 0 || BN % 32 != 0 || TM() % sums_rows() != 0) return TileFault::cover;
    if (stages < 2) return TileFault::stages;
    if (shared_bytes(true) > SMALLEST_BLOCK_SHARED || shared_bytes(false) > capability(75).shared_per_block)
      return TileFault::shared_memory;
    return TileFault::none;
  }
  constexpr TileName name() const { return TileName(BM, BN).shared("s", K_GROUPS); }
};

inline constexpr SliceTile strict_32x32s8{.BM = 32, .BN = 32, .stages = 4, .blocks = 2};
inline constexpr SliceTile strict_64x32s8{.BM = 64, .BN = 32, .stages = 3, .blocks = 2};

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
  constexpr int shared_bytes(bool async) const {
    return warps * ((async ? pipeline_bytes() : stage_bytes()) + STAGING_BYTES);
  }

  constexpr TileFault fault() const {
    if (BM % 8 != 0 || BN % 16 != 0) return TileFault::cover;
    if (BK % 4 != 0) return TileFault::step;
    if (blocks * (shared_bytes(true) + SYSTEM_SHARED) > SM_SHARED) return TileFault::shared_memory;
    if (shared_bytes(true) > SMALLEST_BLOCK_SHARED || shared_bytes(false) > capability(75).shared_per_block)
      return TileFault::shared_memory;
    return TileFault::none;
  }
  constexpr TileName name() const { return TileName(BM, BN).text("w"); }
};

inline constexpr WarpTile strict_64x32w{.BM = 64, .BN = 32, .BK = 16, .stages = 2, .warps = 4};
inline constexpr WarpTile strict_32x32w{.BM = 32, .BN = 32, .BK = 32, .stages = 2, .warps = 4};
inline constexpr WarpTile strict_16x16w{.BM = 16, .BN = 16, .BK = 16, .stages = 3, .warps = 8};

// precision="reproducible", sgemm_reproducible_warps.cu: four warps of a block have the same tile, each a block of k at
// a time, whose sums meet in shared memory behind the pipelines.
inline constexpr WarpTile reproducible_64x32k4{.BM = 64, .BN = 32, .BK = 16, .stages = 2, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_48x32k4{.BM = 48, .BN = 32, .BK = 16, .stages = 2, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_32x32k4{.BM = 32, .BN = 32, .BK = 16, .stages = 4, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_32x16k4{.BM = 32, .BN = 16, .BK = 32, .stages = 3, .warps = 4, .blocks = 2};
inline constexpr WarpTile reproducible_16x16k4{.BM = 16, .BN = 16, .BK = 32, .stages = 4, .warps = 4, .blocks = 2};
// The same where each warp leaves the sums of its block in memory (slabs_of_warps.cuh).
inline constexpr WarpTile reproducible_64x32w = reproducible_64x32k4;
inline constexpr WarpTile reproducible_32x32w = reproducible_32x32k4, reproducible_16x16w = reproducible_16x16k4;
constexpr int sums_bytes(const WarpTile& tile) { return tile.warps * padded_bytes(tile.BM, tile.BN); }

// ---------------------------------------------------------------- short k (sgemm_strict_short_k.cu)
// A warp owns TM rows of a tile; its lanes stand side by side along n. One kernel with four tiles.
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

  constexpr TileFault fault() const {
    if (BM % TM != 0 || BN % 32 != 0) return TileFault::cover;
    if (blocks * (shared_bytes() + SYSTEM_SHARED) > SM_SHARED || shared_bytes() > SMALLEST_BLOCK_SHARED)
      return TileFault::shared_memory;
    return TileFault::none;
  }
};

inline constexpr ShortKTile short_k_large{.BM = 64, .BN = 128, .stages = 2, .blocks = 4};
inline constexpr ShortKTile short_k_square{.BM = 64, .BN = 64, .TM = 16, .stages = 2, .blocks = 5};
inline constexpr ShortKTile short_k_small{.BM = 32, .BN = 64, .stages = 2, .blocks = 8};
inline constexpr ShortKTile short_k_few{.BM = 32, .BN = 64, .stages = 4, .blocks = 4};  // of the small tiles

// ---------------------------------------------------------------- the rules in words
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
