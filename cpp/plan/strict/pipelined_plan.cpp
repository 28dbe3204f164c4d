#include "plan/strict/pipelined_plan.h"

#include <algorithm>

#include "plan/reference_device.h"

namespace fl {
namespace {

// Frozen, as in split_k_plan.cpp.
constexpr int64_t STEP = 32;  // of k
constexpr double FLOPS_OF_A_MULTIPROCESSOR = 0.4e6;
constexpr double TILE_US = 4;       // of a tile, besides its steps
constexpr double STREAM_K_US = 10;  // what stream-K costs besides

double step_us(const PipelinedTile& tile) {
  return 2.0 * double(int64_t{tile.BM} * tile.BN * STEP) / FLOPS_OF_A_MULTIPROCESSOR;
}

// Of a chip whose blocks may share tiles out. Hopper's have no more than the plan counts on.
constexpr int64_t MOST_MULTIPROCESSORS = 192;
int64_t most_blocks(const PipelinedTile& tile) {
  return tile.level == PipelinedFor::hopper ? PLAN_MULTIPROCESSORS : MOST_MULTIPROCESSORS;
}

// From one wave on stream-K is faster; Hopper's tiles keep the bits that they had before it.
int64_t most_tiles_to_split(const PipelinedTile& tile) {
  if (!tile.split_k) return -1;
  const bool shares_out = tile.stream_k && tile.level != PipelinedFor::hopper;
  return shares_out ? PLAN_MULTIPROCESSORS - 1 : 2 * PLAN_MULTIPROCESSORS;
}

}  // namespace

// Tiles before Hopper are cut in steps of their own.
SplitKRule split_k_rule(const PipelinedTile& tile) {
  return {.BM = tile.BM,
          .BN = tile.BN,
          .groups = tile.k_groups,
          .unit = tile.level == PipelinedFor::hopper ? STEP : tile.BK,
          .whole_units = true,
          .most_tiles = most_tiles_to_split(tile),
          .short_k = 11 * STEP,
          .least_units = 3,
          .most_waves = 3,
          .tile_us = TILE_US,
          .k_us = step_us(tile) / STEP};
}

bool computes_triangle(const SgemmArgs& p, const PipelinedTile& tile) {
  return tile.triangle && p.symmetric && p.k >= TRIANGLE_LEAST_K && split_k_plan(p, tile).splits == 1;
}

int64_t computed_tiles(const SgemmArgs& p, const PipelinedTile& tile) {
  if (!computes_triangle(p, tile)) return tiles_of(p, tile);
  return lower_tiles(ceil_div(p.m, tile.BM), tile.BN / tile.BM) * p.batch;
}

bool stream_k_pays(const SgemmArgs& p, const PipelinedTile& tile, int64_t blocks) {
  const int64_t tiles = computed_tiles(p, tile), rest = tiles % blocks, steps = ceil_div(p.k, STEP);
  if (blocks > most_blocks(tile) || tiles < blocks || rest == 0 || steps > 1 << 20) return false;
  // More than a step has to be saved by each block, so that its share is less than two tiles; and more than 1 %, since
  // the blocks then read A and B at different times, or 4 % where sums go on within a block of k: 4096 rows took 699 us
  // for 691 where 3 % was saved.
  const double saved = (1 - double(rest) / double(blocks)) * double(steps);
  const double all = double(ceil_div(tiles, blocks) * steps);
  const double least = tile.in_blocks && (tile.tma || tile.tma_variant) ? 0.04 : 0.01;
  return saved > 1 && (saved - least * all) * step_us(tile) > STREAM_K_US;
}

std::size_t stream_k_bytes(const SgemmArgs& p, const PipelinedTile& tile) {
  if (!tile.stream_k) return 0;
  int64_t blocks = PLAN_MULTIPROCESSORS;
  if (tile.level == PipelinedFor::hopper) {
    if (!stream_k_pays(p, tile, blocks)) return 0;
  } else {
    // Where it pays depends on the device, and what a call takes must not: room where a tile takes so long that it may.
    if (double(ceil_div(p.k, STEP)) * step_us(tile) <= STREAM_K_US) return 0;
    blocks = std::min(computed_tiles(p, tile), most_blocks(tile));
  }
  const int warps = tile.math_threads() / 32;
  return std::size_t(blocks) * (std::size_t(tile.tile_bytes()) + std::size_t(warps) * sizeof(unsigned));
}

int64_t accumulation_depth(const SgemmArgs& p, const PipelinedTile& tile) {
  if (tile.persistent() && !tile.split_k) return sequential_depth(p);
  const int64_t k = ceil_div(p.k, tile.cluster_k);
  return depth_of_splits(k, split_k_rule(tile), split_k_plan(p, tile).splits) + tile.cluster_k - 1;
}

std::size_t workspace_bytes(const SgemmArgs& p, const PipelinedTile& tile) {
  const SplitKPlan plan = split_k_plan(p, tile);
  return plan.splits > 1 ? plan.bytes(p) : stream_k_bytes(p, tile);
}

}  // namespace fl
