// What a kernel of the table is, besides what it computes: shown by fl.kernels(), and asked by whoever needs to know.
#pragma once

#include "cost/ladder_cost.h"
#include "plan/strict/cluster_tiles.h"
#include "plan/strict/multistage_tiles.h"
#include "plan/strict/pipelined_tiles.h"
#include "plan/strict/warp_tiles.h"
#include "plan/terms.h"

namespace fl {

struct Traits {
  bool strict = true;                // float32 FMAs in an order of k that the call alone decides; else accurate only
  int tile_rows = 0, tile_cols = 0;  // of the result, for a block; 0: no fixed tile
  bool split_k = false;              // blocks may take ranges of k, whose sums meet in memory
  bool cluster_k = false;            // the blocks of a cluster may share a tile's k
  bool stream_k = false;             // tiles may be shared out evenly among the blocks
  bool tma = false;                  // operands come, or results leave, by the tensor memory accelerator where they can
  bool ladder = false;               // a step of the course
  bool only_by_name = false;         // dispatch does not take it: a step of the ladder of SGEMM, there to be read
  Terms terms = Terms::none;         // what it multiplies in place of float32 numbers
  bool wgmma = false;                // terms by warpgroup products, which have tiles of 96 columns
  bool bf16x6_behind = false;        // what two terms cannot hold goes to three, in large products
  bool addend = false;               // what beta multiplies is read where it lies; else it is copied to C first
  bool triangle = false;             // of a symmetric product (SgemmArgs::symmetric) one triangle is computed
  bool grouped = false;              // several products may be one launch (cuda/kernels/common/grouped.cuh)
  bool reproducible = false;         // sums in the order of docs/reproducible.md
  bool only_reproducible = false;    // dispatch takes it for nothing else
};

constexpr Traits traits_of(const PipelinedTile& tile) {
  return {.tile_rows = tile.BM,
          .tile_cols = tile.BN,
          .split_k = tile.split_k,
          .cluster_k = tile.cluster_k > 1,
          .stream_k = tile.stream_k,
          .tma = tile.tma_variant,
          .triangle = tile.triangle,
          .reproducible = tile.in_blocks,
          .only_reproducible = tile.in_blocks};
}
constexpr Traits traits_of(const ClusterSplitKTile& tile) {
  return {.tile_rows = tile.BM, .tile_cols = tile.BN, .cluster_k = true, .tma = true, .grouped = true};
}
constexpr Traits traits_of(const MultistageTile& tile) {
  return {.tile_rows = tile.BM, .tile_cols = tile.BN, .split_k = true, .grouped = !tile.spread() && !tile.slices()};
}
constexpr Traits traits_of(const WarpTile& tile) { return {.tile_rows = tile.BM, .tile_cols = tile.BN}; }

constexpr Traits traits_of(const LadderTile& tile) {
  return {.tile_rows = tile.BM, .tile_cols = tile.BN, .ladder = true};
}
constexpr Traits step_to_read(const LadderTile& tile) {
  Traits traits = traits_of(tile);
  traits.only_by_name = true;
  return traits;
}

constexpr Traits step_by_boxes(const LadderTile& tile) {
  Traits traits = step_to_read(tile);
  traits.tma = true;
  return traits;
}

constexpr Traits plain{};
constexpr Traits grouped{.grouped = true};
constexpr Traits three_terms{.strict = false};  // on the CPU
constexpr Traits ladder{.ladder = true};
constexpr Traits packed{.triangle = true};
constexpr Traits in_blocks{.reproducible = true};
constexpr Traits only_in_blocks{.reproducible = true, .only_reproducible = true};
constexpr Traits packed_in_blocks{.triangle = true, .reproducible = true};
constexpr Traits splits_k{.split_k = true};
constexpr Traits grouped_splits_k{.split_k = true, .grouped = true};
constexpr Traits split_terms(Terms terms, bool wgmma, bool splits_k, bool bf16x6_behind) {
  return {.strict = false,
          .split_k = splits_k,
          .tma = wgmma,
          .terms = terms,
          .wgmma = wgmma,
          .bf16x6_behind = bf16x6_behind,
          .addend = true,
          .triangle = wgmma};
}

}  // namespace fl
