// The tiles of products by Hopper's warpgroup instructions, each once: plans, costs, launches and the kernels
// themselves take their numbers from these objects. docs/notes/sgemm_accurate.md has the designs.
#pragma once

#include "core/device_spec.h"
#include "plan/accurate/float32_fallback.h"
#include "plan/accurate/split_layout.h"

namespace fl {

// What the stores of persistent blocks have of shared memory for each warp: two boxes of 16 rows by 32 columns of C.
constexpr int BOX_BYTES = 16 * 32 * 4;

// Stages of 64 k in shared memory, which one thread fills, and warpgroups that multiply what is there, 64 rows at a
// time. The blocks are persistent (persistent_product.cuh), or each, or each cluster, has a single tile
// (single_tile_product.cuh).
struct WgmmaTile {
  Terms terms = Terms::fp16x2;
  int BM, BN;
  int waves = 1;     // of 64 rows, which a warpgroup multiplies one after the other
  int k_groups = 1;  // warpgroups of a block that share the k of a tile, and add up their sums
  int stages;
  int cluster_n = 1;          // persistent blocks that share a tile of A, each with columns of its own
  int cluster_k = 1;          // blocks that share the k of a single tile
  bool single = false;        // else persistent
  bool behind = false;        // three terms behind two, in the same kernel
  bool falls_back = false;    // persistent, with the float32 fallback in the same kernel
  bool has_triangle = false;  // there is a kernel for a matrix times its own transpose
  // This is that: the tiles on and below the diagonal of C are computed. The terms of A serve as B, too; its blocks lie
  // in a stage term by term, so that the lines of a term follow one another.
  bool triangle = false;
  // Products of terms that are left out, since one of them is zero: of an operand of 16 bits the second of two is. If
  // that is one, the operand is A (in_16_bits_first).
  int left_out = 0;
  // Frozen, as they decide bits: operations of a multiprocessor, as a part of PLAN_OPERATIONS_PER_US, and microseconds
  // for the first tile's way in and the last one's way out.
  double rate = 1, ends = 0;
  double rate_in_16_bits = rate;  // the same with products left out. Decides no bits

  constexpr bool operator==(const WgmmaTile&) const = default;
  constexpr WgmmaTile triangle_tile() const {
    WgmmaTile tile = *this;
    tile.triangle = true;
    return tile;
  }
  constexpr WgmmaTile leaving_out(int products) const {
    WgmmaTile tile = *this;
    tile.left_out = products;
    // The room of the terms that are left out is that of more stages.
    for (WgmmaTile next = tile; next.stages += k_groups, next.fits();) tile = next;
    return tile;
  }
  constexpr bool fits() const {
    return stages * TERM_BLOCK <= TERMS_SMALLEST_K && shared_bytes() <= capability(90).shared_per_block;
  }

  constexpr int m_groups() const { return BM / (64 * waves); }
  constexpr int k_parts() const { return cluster_k * k_groups; }
  constexpr int blocks() const { return cluster_n * cluster_k; }  // of a cluster
  constexpr int part_threads() const { return 128 * m_groups(); }
  constexpr int consumer_threads() const { return part_threads() * k_groups; }
  constexpr int threads() const { return consumer_threads() + 128; }
  // Of the two warpgroups of a block one issues products while the other adds up its last ones. Those of single tiles
  // have stages of their own. Else both wait for theirs, and add up, at the same time: 13.51 us instead of 12.97 at
  // 768, 11.78 instead of 11.38 at 640. Products of three terms last long enough (26.8 us at 1024, 26.9 in ping-pong),
  // and two warpgroups with one stage lose by it (18.4 instead of 16.4 at 1024).
  constexpr bool ping_pong() const {
    return single ? k_groups == 2 && m_groups() == 1 && terms == Terms::fp16x2 : cluster_n > 1;
  }

  // Whether the products of second terms may have sums of their own, for all of k (second_terms_apart). Tiles of one
  // part have no registers for that.
  constexpr bool may_be_apart() const { return terms == Terms::fp16x2 && k_parts() > 1 && left_out < 2; }

  // A stage: blocks of 64 lines of A, and of B blocks of 64 columns, or one of as many as the tile has. That is stored
  // without a swizzle. Two blocks, the second half empty, take longer, as L2 gives a multiprocessor 64 bytes a clock:
  // 14.13 us instead of 13.51 at 768, 33.5 instead of 32.5 at 1536, 88.7 instead of 85.4 at 2560.
  constexpr bool unswizzled() const { return BN % TERM_BLOCK != 0; }
  constexpr int b_panel() const { return unswizzled() ? BN : TERM_BLOCK; }  // columns
  constexpr int a_chunks() const { return BM / 64; }
  constexpr int b_chunks() const { return BN / b_panel(); }
  constexpr int b_term_bytes() const { return b_panel() * TERM_ROW_BYTES; }
  // Of a chunk, in memory and in a stage.
  constexpr int a_bytes() const { return term_count(terms) * TERM_BYTES; }
  constexpr int b_bytes() const { return term_count(terms) * b_term_bytes(); }
  constexpr int a_staged() const { return a_bytes() - (left_out > 0 ? TERM_BYTES : 0); }
  constexpr int b_staged() const { return b_bytes() - (left_out > 1 ? b_term_bytes() : 0); }
  constexpr int stage_bytes() const { return a_chunks() * a_staged() + b_chunks() * b_staged(); }
  constexpr int pipeline_bytes() const { return stages * stage_bytes(); }

  // Behind the stages, of persistent blocks two boxes for each warp; of a single tile what its parts of k get from each
  // other: four floats of a thread for each of the `vectors` that a part stores.
  constexpr int vectors() const { return BN / 8 / k_parts(); }
  constexpr int part_bytes() const { return vectors() * part_threads() * 16; }
  constexpr int barriers() const {
    return pipeline_bytes() + (single ? k_groups * (k_parts() - 1) * part_bytes() : m_groups() * 4 * 2 * BOX_BYTES);
  }
  constexpr int shared_bytes() const {
    const int bytes = barriers() + 16 * stages + 8 + 1024;  // aligned to 1024 by the kernel
    return single && bytes < FALLBACK_SHARED ? FALLBACK_SHARED : bytes;
  }

  // Registers of a thread: while products run, and of those that fall back when all have given theirs back.
  constexpr int consumer_registers() const { return m_groups() == 3 ? 160 : 240; }
  constexpr int producer_registers() const { return m_groups() == 3 ? 32 : 24; }
  static constexpr int FALLBACK_REGISTERS = 200;

  // A kernel is made for no other tile: the compiler then shows the rule that it breaks.
  consteval bool sound() const {
    if (BM % (64 * waves) != 0) throw "every warpgroup has as many waves of 64 rows";
    if (stages * TERM_BLOCK > TERMS_SMALLEST_K) throw "the producer fills all stages before it knows the status";
    if (shared_bytes() > capability(90).shared_per_block) throw "the stages fit the shared memory of a block";
    if (single ? waves * cluster_n != 1 : k_parts() != 1) throw "single tiles alone share k";
    if (single && vectors() * k_parts() * 8 != BN)
      throw "every part stores an equal share of the columns, eight at a time";
    if (stages % k_groups != 0) throw "every warpgroup along k has stages of its own, as many as the others";
    if (single && threads() < FALLBACK_THREADS) throw "single tiles have the float32 fallback inside";
    if (falls_back && (shared_bytes() < FALLBACK_SHARED || threads() < FALLBACK_THREADS || cluster_n != 1))
      throw "the float32 fallback has room in the block";
    if (ping_pong() && consumer_threads() != 256) throw "ping-pong is between two warpgroups";
    if (has_triangle && BM != BN * cluster_n) throw "the tiles of clusters are squares, so that they meet the diagonal";
    if (has_triangle && unswizzled()) throw "the terms of A have panels of 64 lines";
    return true;
  }
};

// clang-format off
// Those of fp16x2 that a plan chooses from.
inline constexpr WgmmaTile fp16x2_256x128{
    .BM = 256, .BN = 128, .waves = 2, .stages = 2, .cluster_n = 2, .has_triangle = true, .rate = 1, .ends = 7.5,
    .rate_in_16_bits = 1.44};
inline constexpr WgmmaTile fp16x2_192x128{
    .BM = 192, .BN = 128, .stages = 2, .rate = 0.95, .ends = 4, .rate_in_16_bits = 1.41};
inline constexpr WgmmaTile fp16x2_192x96{
    .BM = 192, .BN = 96, .stages = 2, .falls_back = true, .rate = 0.92, .ends = 4, .rate_in_16_bits = 1.41};
inline constexpr WgmmaTile fp16x2_128x128{
    .BM = 128, .BN = 128, .stages = 3, .falls_back = true, .has_triangle = true, .rate = 0.95, .ends = 4,
    .rate_in_16_bits = 1.4};
inline constexpr WgmmaTile fp16x2_128x64{
    .BM = 128, .BN = 64, .stages = 4, .rate = 0.9, .ends = 3.3, .rate_in_16_bits = 1.2};
inline constexpr WgmmaTile fp16x2_single_128x64{
    .BM = 128, .BN = 64, .stages = 4, .single = true, .rate = 0.9, .ends = 2.7, .rate_in_16_bits = 1.1};
inline constexpr WgmmaTile fp16x2_single_64x96{
    .BM = 64, .BN = 96, .k_groups = 2, .stages = 4, .single = true, .rate = 0.82, .ends = 2.8,
    .rate_in_16_bits = 1};
inline constexpr WgmmaTile fp16x2_single_64x64{
    .BM = 64, .BN = 64, .k_groups = 2, .stages = 4, .single = true, .rate = 0.8, .ends = 2.5,
    .rate_in_16_bits = 0.87};
inline constexpr WgmmaTile fp16x2_single_64x64c2{
    .BM = 64, .BN = 64, .k_groups = 2, .stages = 4, .cluster_k = 2, .single = true, .rate = 0.75, .ends = 3};
inline constexpr WgmmaTile fp16x2_tiles[] = {
    fp16x2_256x128,       fp16x2_192x128,      fp16x2_192x96,       fp16x2_128x128,       fp16x2_128x64,
    fp16x2_single_128x64, fp16x2_single_64x96, fp16x2_single_64x64, fp16x2_single_64x64c2};

inline constexpr WgmmaTile bf16x6_128x128{
    .terms = Terms::bf16x6, .BM = 128, .BN = 128, .stages = 2, .falls_back = true, .has_triangle = true};
inline constexpr WgmmaTile bf16x6_128x64{.terms = Terms::bf16x6, .BM = 128, .BN = 64, .stages = 2};
inline constexpr WgmmaTile bf16x6_single_128x64{
    .terms = Terms::bf16x6, .BM = 128, .BN = 64, .stages = 2, .single = true};
inline constexpr WgmmaTile bf16x6_single_64x64{.terms = Terms::bf16x6, .BM = 64, .BN = 64, .stages = 4, .single = true};
inline constexpr WgmmaTile bf16x6_single_64x64c2{
    .terms = Terms::bf16x6, .BM = 64, .BN = 64, .stages = 4, .cluster_k = 2, .single = true};
inline constexpr WgmmaTile bf16x6_single_192x64c2{
    .terms = Terms::bf16x6, .BM = 192, .BN = 64, .stages = 2, .cluster_k = 2, .single = true};
// Behind two terms in the same launch, by FALLBACK_THREADS: behind tiles of 64x64, which are few, and behind others.
inline constexpr WgmmaTile bf16x6_behind_64x64{
    .terms = Terms::bf16x6, .BM = 64, .BN = 64, .stages = 3, .single = true, .behind = true};
inline constexpr WgmmaTile bf16x6_behind_64x128{
    .terms = Terms::bf16x6, .BM = 64, .BN = 128, .stages = 2, .single = true, .behind = true};

// Of split-K, where the sums of a single tile go to the workspace.
inline constexpr WgmmaTile fp16x2_split_k{.BM = 128, .BN = 128, .stages = 3, .single = true, .rate = 0.95};
inline constexpr WgmmaTile bf16x6_split_k{.terms = Terms::bf16x6, .BM = 128, .BN = 128, .stages = 2, .single = true};
// clang-format on

}  // namespace fl
