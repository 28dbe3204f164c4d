// The tiles of products by mma.sync, each once: plans, costs, launches and the kernels themselves (mma_product.cuh)
// take their numbers from these objects. docs/notes/sgemm_accurate.md has the design.
#pragma once

#include "core/device_spec.h"
#include "plan/accurate/float32_fallback.h"
#include "plan/accurate/split_layout.h"

namespace fl {

// What the range check takes of a block's shared memory.
constexpr int RANGE_CHECK_BYTES = 24;

// warps_m x warps_n warps are a group, each with MT fragments of 16 rows and NT of 8 columns. k_groups groups share the
// k of a tile: each takes every k_groups-th step of BK, in stages of its own, and their sums are added up.
struct MmaTile {
  Terms terms = Terms::fp16x2;
  int BM, BN;
  int BK;  // of a part's k, what is promoted to float32 at a time
  int warps_m, warps_n;
  int k_groups = 1;
  int stages;
  int blocks = 1;          // on a multiprocessor at a time
  int instruction_k = 16;  // with 8, of 7.5, copies go through registers
  // One tile for each block, with the float32 fallback inside: the same sums as those of another tile in the list,
  // where there is a multiprocessor for each. These have no part in how k is summed.
  bool single = false;
  // Frozen, as they decide bits: operations of a multiprocessor, as a part of PLAN_MMA_OPERATIONS_PER_US, and
  // microseconds for the first tile's way in and the last one's way out.
  double rate, ends;

  constexpr int MT() const { return BM / (16 * warps_m); }
  constexpr int NT() const { return BN / (8 * warps_n); }
  constexpr int group_threads() const { return 32 * warps_m * warps_n; }
  constexpr int threads() const { return group_threads() * k_groups; }
  constexpr bool persistent() const { return k_groups == 1 && !single; }
  constexpr bool async() const { return instruction_k == 16; }
  // Whole panels of B lie in a stage as in memory, 64 columns side by side; others in strips of 32.
  constexpr bool strips() const { return BN % TERM_BLOCK != 0; }
  constexpr int strip_bytes() const { return 32 * BK * 2; }

  // Shared memory in bytes: the stages of all groups, or in their place the groups' sums; the exponents of a tile's
  // lines, of persistent blocks those of the next tile too; and what the range check takes.
  constexpr int a_term_bytes() const { return BM * BK * 2; }
  constexpr int b_term_bytes() const { return BN * BK * 2; }
  constexpr int stage_bytes() const { return term_count(terms) * (a_term_bytes() + b_term_bytes()); }
  constexpr int group_bytes() const { return stages * stage_bytes(); }
  constexpr int sums_bytes() const { return k_groups == 1 ? 0 : k_groups * BM * BN * 4; }
  constexpr int exponents() const {
    return group_bytes() * k_groups > sums_bytes() ? group_bytes() * k_groups : sums_bytes();
  }
  constexpr int exponents_bytes() const { return (BM + BN) * 4; }
  constexpr int status() const { return exponents() + (persistent() ? 2 : 1) * exponents_bytes(); }
  constexpr int shared_bytes() const { return status() + RANGE_CHECK_BYTES; }

  // The float32 fallback is in the same kernel. Persistent tiles are slower with it: 246 us instead of 234 at 4096.
  constexpr bool falls_back() const {
    return threads() == FALLBACK_THREADS && !persistent() && shared_bytes() >= FALLBACK_SHARED;
  }

  // A kernel is made for no other tile: the compiler then shows the rule that it breaks.
  consteval bool sound() const {
    if (BM != 16 * MT() * warps_m || BN != 8 * NT() * warps_n || BN % 32 != 0)
      throw "the outputs of all warps of a group are the block's BM x BN, in strips of 32 columns";
    if (BK != 32 && BK != 64) throw "a stage is a block of terms, or half of one";
    if (!strips() && NT() != 4 && NT() != 8) throw "a warp's columns lie in one panel of B";
    if (group_threads() * 4 < BM + BN) throw "a thread copies four exponents";
    if (stages * k_groups > TERMS_SMALLEST_K / BK) throw "the copies that are ahead would leave the first tile";
    if (MT() * NT() % k_groups != 0) throw "every group stores an equal share of the sums";
    if (!async() && !persistent()) throw "through registers the blocks are persistent";
    return true;
  }
};

// clang-format off
inline constexpr MmaTile fp16x2_mma_128x128{
    .BM = 128, .BN = 128, .BK = 64, .warps_m = 2, .warps_n = 4, .stages = 2, .rate = 1, .ends = 2};
inline constexpr MmaTile fp16x2_mma_128x64{
    .BM = 128, .BN = 64, .BK = 64, .warps_m = 2, .warps_n = 2, .stages = 2, .blocks = 2, .rate = 0.85, .ends = 2.5};
// Most GPUs lend a block 99 KiB: there is a tile within that for each number of parts of k and length of a promotion.
inline constexpr MmaTile fp16x2_mma_tiles[] = {
    fp16x2_mma_128x128,
    fp16x2_mma_128x64,
    {.BM = 192, .BN = 96, .BK = 32, .warps_m = 4, .warps_n = 2, .stages = 3, .rate = 0.87, .ends = 4},
    {.BM = 128, .BN = 128, .BK = 32, .warps_m = 2, .warps_n = 4, .stages = 3, .rate = 0.9, .ends = 2},
    {.BM = 96, .BN = 64, .BK = 32, .warps_m = 2, .warps_n = 1, .k_groups = 4, .stages = 2, .rate = 0.74, .ends = 1.3},
    {.BM = 32, .BN = 64, .BK = 64, .warps_m = 1, .warps_n = 2, .k_groups = 2, .stages = 2, .blocks = 2, .rate = 0.62,
     .ends = 2},
    {.BM = 32, .BN = 64, .BK = 32, .warps_m = 1, .warps_n = 2, .k_groups = 4, .stages = 2, .rate = 0.5, .ends = 2},
    {.BM = 192, .BN = 96, .BK = 32, .warps_m = 4, .warps_n = 2, .stages = 3, .single = true, .rate = 0.93, .ends = 3}};

inline constexpr MmaTile bf16x6_mma_tiles[] = {
    {.terms = Terms::bf16x6, .BM = 128, .BN = 128, .BK = 32, .warps_m = 2, .warps_n = 4, .stages = 2, .rate = 0.46,
     .ends = 2},
    {.terms = Terms::bf16x6, .BM = 64, .BN = 64, .BK = 32, .warps_m = 1, .warps_n = 2, .k_groups = 2, .stages = 2,
     .rate = 0.44, .ends = 2}};

// Within the 64 KiB of 7.5.
inline constexpr MmaTile fp16x2_mma_k8_tiles[] = {
    {.BM = 128, .BN = 64, .BK = 32, .warps_m = 4, .warps_n = 2, .stages = 2, .instruction_k = 8, .rate = 0.8,
     .ends = 2.5},
    {.BM = 64, .BN = 64, .BK = 32, .warps_m = 4, .warps_n = 2, .stages = 2, .instruction_k = 8, .rate = 0.6,
     .ends = 2}};
// clang-format on

}  // namespace fl
