// Tiles whose blocks have few warps, all of which copy and multiply, in groups that share the block's k
// (sgemm_strict_multistage.cu, sgemm_strict_spread.cu).
#pragma once

#include "plan/strict/tile_rules.h"

namespace fl {

// What a group takes of each step along k: every k_groups-th line, or a slice of neighbouring ones.
enum class ShareOfK { lines, slices };
// When a thread starts its copies of a step: together, before the FMAs, or each at a place of its own between them.
enum class Copies { together, spread };

struct MultistageTile {
  int BM, BN, BK, TM, TN;
  int k_groups;
  int stages;
  int blocks;  // on a multiprocessor at a time, as far as registers go
  ShareOfK share = ShareOfK::lines;
  Copies copies = Copies::spread;
  bool one_buffer = false;  // of fragments
  bool any_gpu = false;     // where a device has no asynchronous copies, operands go through registers

  constexpr bool slices() const { return share == ShareOfK::slices; }
  constexpr bool spread() const { return copies == Copies::spread; }
  constexpr int k_unit() const { return spread() ? 16 : BK; }  // ranges of k are whole ones
  constexpr int warps_n() const { return BN / (4 * TN); }
  constexpr int group_threads() const { return BM / (8 * TM) * warps_n() * 32; }
  constexpr int threads() const { return group_threads() * k_groups; }
  // A as slices read it has k contiguous.
  constexpr int a_bytes() const { return slices() ? padded_bytes(BM, BK) : padded_bytes(BK, BM); }
  constexpr int stage_bytes() const { return a_bytes() + padded_bytes(BK, BN); }
  constexpr int pipeline_bytes() const { return stages * stage_bytes(); }
  // The groups' sums take the place of the pipeline: so many rows of each thread at a time.
  constexpr int sums_rows(bool async = true) const { return slices() || !async ? 4 : TM; }
  constexpr int sums_bytes(bool async = true) const { return padded_bytes(BM / TM * sums_rows(async), BN); }  // a group
  // By way of registers one stage is enough.
  constexpr int shared_bytes(bool async = true) const {
    const int pipeline = async ? pipeline_bytes() : stage_bytes(), sums = k_groups * sums_bytes(async);
    return pipeline > sums ? pipeline : sums;
  }
  // For few columns; of a product with few rows such tiles compute the transposed one.
  constexpr bool tall() const { return spread() && BN <= 32; }

  consteval bool sound() const {
    if (BM % (8 * TM) != 0 || BN % (4 * TN) != 0 || (!spread() && BN % 32 != 0))
      throw "the outputs of all lanes and warps of a group are the block's BM x BN";
    if (TM % 4 != 0 || TN % 4 != 0) throw "a thread's rows and columns come in fours";
    const int lines = slices() ? 4 : one_buffer ? 1 : 2;  // that are read at a time
    if (BK % (k_groups * lines) != 0 || k_unit() % k_groups != 0)
      throw "a step along k is whole lines of every group, and whole rounds of copies";
    if (threads() != 256 && (!spread() || threads() != 128)) throw "eight warps multiply";
    if (stages < 2) throw "every group and every producer has a stage";
    if (any_gpu && BM != 8 * TM) throw "by way of registers sums are stored in bands of all columns";
    const bool fits_75 = !any_gpu || shared_bytes(false) <= capability(75).shared_per_block;
    if (shared_bytes() > SMALLEST_BLOCK_SHARED || blocks * (shared_bytes() + SYSTEM_SHARED) > SM_SHARED || !fits_75)
      throw "the blocks meant for a multiprocessor have room there, and no more";
    return true;
  }
  constexpr TileName name() const {
    const char* const letter = slices() ? "s" : spread() ? "m" : "i";
    return k_groups > 1 ? TileName(BM, BN).shared(letter, k_groups) : TileName(BM, BN).text("m1");
  }
};

// clang-format off
inline constexpr MultistageTile strict_64x16m4{
    .BM = 64, .BN = 16, .BK = 32, .TM = 8, .TN = 4, .k_groups = 4, .stages = 3, .blocks = 4,
    .any_gpu = true};
inline constexpr MultistageTile strict_64x32m4{
    .BM = 64, .BN = 32, .BK = 32, .TM = 8, .TN = 8, .k_groups = 4, .stages = 3, .blocks = 4, .one_buffer = true,
    .any_gpu = true};
inline constexpr MultistageTile strict_64x48m4{
    .BM = 64, .BN = 48, .BK = 32, .TM = 8, .TN = 12, .k_groups = 4, .stages = 3, .blocks = 3, .one_buffer = true};
inline constexpr MultistageTile strict_64x64m4{
    .BM = 64, .BN = 64, .BK = 32, .TM = 8, .TN = 8, .k_groups = 4, .stages = 3, .blocks = 2, .one_buffer = true,
    .any_gpu = true};
inline constexpr MultistageTile strict_96x64m2{
    .BM = 96, .BN = 64, .BK = 32, .TM = 12, .TN = 8, .k_groups = 2, .stages = 3, .blocks = 3, .one_buffer = true};
inline constexpr MultistageTile strict_64x128m2{
    .BM = 64, .BN = 128, .BK = 16, .TM = 8, .TN = 8, .k_groups = 2, .stages = 4, .blocks = 2};
inline constexpr MultistageTile strict_64x64m1{
    .BM = 64, .BN = 64, .BK = 16, .TM = 8, .TN = 4, .k_groups = 1, .stages = 3, .blocks = 4, .one_buffer = true,
    .any_gpu = true};
inline constexpr MultistageTile strict_64x128m1{
    .BM = 64, .BN = 128, .BK = 16, .TM = 8, .TN = 8, .k_groups = 1, .stages = 3, .blocks = 4, .one_buffer = true};

inline constexpr MultistageTile strict_32x32i4{
    .BM = 32, .BN = 32, .BK = 32, .TM = 4, .TN = 4, .k_groups = 4, .stages = 3, .blocks = 4,
    .copies = Copies::together, .any_gpu = true};
inline constexpr MultistageTile strict_32x64i4{
    .BM = 32, .BN = 64, .BK = 32, .TM = 4, .TN = 8, .k_groups = 4, .stages = 3, .blocks = 3,
    .copies = Copies::together, .any_gpu = true};
inline constexpr MultistageTile strict_64x64i2{
    .BM = 64, .BN = 64, .BK = 32, .TM = 8, .TN = 4, .k_groups = 2, .stages = 3, .blocks = 3,
    .copies = Copies::together, .any_gpu = true};

// Within the shared memory that all devices give a block.
inline constexpr MultistageTile strict_32x32s8{
    .BM = 32, .BN = 32, .BK = 64, .TM = 4, .TN = 8, .k_groups = 8, .stages = 4, .blocks = 2,
    .share = ShareOfK::slices, .copies = Copies::together, .any_gpu = true};
inline constexpr MultistageTile strict_64x32s8{
    .BM = 64, .BN = 32, .BK = 64, .TM = 8, .TN = 8, .k_groups = 8, .stages = 3, .blocks = 2,
    .share = ShareOfK::slices, .copies = Copies::together, .any_gpu = true};
// clang-format on

// The tiles that are kernels, by the file that compiles them.
// clang-format off
// sgemm_strict_multistage.cu
#define FL_INTERLEAVED_TILES(DO) DO(strict_32x32i4) DO(strict_32x64i4) DO(strict_64x64i2)
// sgemm_strict_multistage.cu
#define FL_SLICE_TILES(DO) DO(strict_32x32s8) DO(strict_64x32s8)
// sgemm_strict_spread.cu
#define FL_SPREAD_TILES(DO) DO(strict_64x16m4) DO(strict_64x32m4) DO(strict_64x48m4) DO(strict_64x64m4) \
    DO(strict_96x64m2) DO(strict_64x128m2) DO(strict_64x64m1) DO(strict_64x128m1)
// clang-format on

}  // namespace fl
