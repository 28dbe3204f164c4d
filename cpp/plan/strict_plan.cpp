#include "plan/strict_plan.h"

#include <algorithm>

#include "plan/reference_device.h"
#include "plan/tall_skinny_plan.h"

namespace fl {
namespace {

// Frozen, in microseconds: fitted on an H200 once, and part of the specification of results since.
constexpr int64_t STEP = 32;  // of k: ranges are whole ones
constexpr double FLOPS_OF_A_MULTIPROCESSOR = 0.4e6;
constexpr double REDUCTION_US = 2.6, REDUCTION_BYTES = 3e6;
constexpr double PIPELINED_TILE_US = 4;                                     // of a tile, besides its steps
constexpr double INTERLEAVED_TILE_US = 0.6, INTERLEAVED_LATENCY_US = 0.27;  // the latter of a step
constexpr double INTERLEAVED_STEP_US = 0.1, INTERLEAVED_OUTPUT_US = 0.168e-3;
constexpr double STREAM_K_US = 10;  // what stream-K costs besides

constexpr double MIXED_TILE_US = 1, MIXED_K_US = 3e-3, MIXED_OUTPUT_K_US = 5.8e-6;  // the latter two of a k
constexpr int64_t MIXED_MOST_TILES = 3 * PLAN_MULTIPROCESSORS, MIXED_MOST_WAVES = 6;
constexpr double SLICES_TILE_US = 3.2, SLICES_K_US = 1e-3, SLICES_OUTPUT_K_US = 8.2e-6;  // the latter two of a k

template <class Tile>
int64_t tiles_of(const SgemmArgs& p, const Tile& tile) {
  return ceil_div(p.m, tile.BM) * ceil_div(p.n, tile.BN) * p.batch;
}

double step_us(const PipelinedTile& tile) {
  return 2.0 * double(int64_t{tile.BM} * tile.BN * STEP) / FLOPS_OF_A_MULTIPROCESSOR;
}

// Of a chip whose blocks may share tiles out. Hopper's have no more than the plan counts on.
constexpr int64_t MOST_MULTIPROCESSORS = 192;
int64_t most_blocks(const PipelinedTile& tile) {
  return tile.level == PipelinedFor::hopper ? PLAN_MULTIPROCESSORS : MOST_MULTIPROCESSORS;
}

double reduction_us(const SgemmArgs& p, int64_t splits) {
  if (splits == 1) return 0.0;
  return REDUCTION_US + double(splits) * double(p.m) * double(p.n) * double(p.batch) * 4 / REDUCTION_BYTES;
}

// Tiles before Hopper are cut in steps of their own.
int64_t step_of(const PipelinedTile& tile) { return tile.level == PipelinedFor::hopper ? STEP : tile.BK; }

// What the reduction adds one after the other.
int64_t to_meet(int64_t splits) { return splits == 1 ? 0 : splits <= 16 ? splits : ceil_div(splits, 8) + 8; }

// Of k in `splits` ranges of whole steps, whose sums meet in memory. Groups of warps share a range step by step, or
// each of its steps line by line.
int64_t depth_of_splits(int64_t k, int64_t groups, bool line_by_line, int64_t splits, int64_t step = STEP) {
  const int64_t steps = ceil_div(ceil_div(k, step), splits);
  return (line_by_line ? ceil_div(steps * step, groups) : ceil_div(steps, groups) * step) + groups - 1 +
         to_meet(splits);
}

int64_t slices_depth(int64_t k, int splits) {
  return slices_range(k, splits) / SliceTile::K_GROUPS + SliceTile::K_GROUPS - 1 + to_meet(splits);
}

int64_t mixed_depth(int64_t k, int64_t groups, int splits) {
  return mixed_range(k, splits) / groups + groups - 1 + to_meet(splits);
}

// The fewest ranges that keep such a depth within the limit on accurate products, if at most `most` can.
int64_t fewest_splits(const SgemmArgs& p, int64_t groups, bool line_by_line, int64_t most, int64_t step = STEP) {
  const int64_t limit = deepest_allowed(p);
  if (limit == any_depth) return 1;
  int64_t splits = ceil_div(p.k, groups * limit);
  while (splits < most && depth_of_splits(p.k, groups, line_by_line, splits, step) > limit) ++splits;
  return std::min(splits, most);
}

// Of as many splits as fill 0, 1, ... `most_waves` waves of multiprocessors, those that are expected to take the least
// time; the fewest of them if two take the same.
template <class Us>
int least_of_waves(int64_t tiles, int64_t steps, int64_t most_waves, int64_t fewest, int64_t most, Us us) {
  int best = 1;
  double least = 0;
  for (int64_t waves = 0; waves <= most_waves; ++waves) {
    const int64_t wanted = std::clamp<int64_t>(waves * PLAN_MULTIPROCESSORS / tiles, fewest, most);
    const int64_t splits = ceil_div(steps, ceil_div(steps, wanted));
    const double time = us(splits, double(ceil_div(tiles * splits, PLAN_MULTIPROCESSORS)));
    if (waves == 0 || time < least) least = time, best = int(splits);
  }
  return best;
}

std::size_t split_k_bytes(const SgemmArgs& p, const SplitKPlan& plan) {
  return plan.splits == 1 ? 0 : std::size_t(plan.splits) * std::size_t(p.batch * p.m * plan.ld) * sizeof(float);
}

}  // namespace

SplitKPlan split_k_plan(const SgemmArgs& p, const PipelinedTile& tile) {
  SplitKPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = tiles_of(p, tile), step = step_of(tile), steps = ceil_div(p.k, step);
  // From one wave on stream-K is faster; Hopper's tiles keep the bits that they had before it.
  const bool shares_out = tile.stream_k && tile.level != PipelinedFor::hopper;
  const int64_t most_tiles = shares_out ? PLAN_MULTIPROCESSORS - 1 : 2 * PLAN_MULTIPROCESSORS;
  if (!tile.split_k || tiles > most_tiles || ceil_div(p.k, STEP) < 12) return plan;
  const int64_t most = steps / 3, fewest = fewest_splits(p, tile.k_groups, false, most, step);
  const double us = step_us(tile) * double(step) / STEP;
  plan.splits = least_of_waves(tiles, steps, 3, fewest, most, [&](int64_t splits, double waves) {
    return waves * (PIPELINED_TILE_US + double(ceil_div(steps, splits)) * us) + reduction_us(p, splits);
  });
  return plan;
}

// A step takes a block its latency and its share of the multiprocessor's time.
SplitKPlan split_k_plan(const SgemmArgs& p, const InterleavedTile& tile) {
  SplitKPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = tiles_of(p, tile), steps = ceil_div(p.k, STEP);
  if (tiles > 2 * PLAN_MULTIPROCESSORS || steps < 8) return plan;
  const double shared_us = INTERLEAVED_STEP_US + INTERLEAVED_OUTPUT_US * double(tile.BM * tile.BN);
  const int64_t most = steps / 4, fewest = fewest_splits(p, tile.k_groups, true, most);
  plan.splits = least_of_waves(tiles, steps, 6, fewest, most, [&](int64_t splits, double waves) {
    const double each = double(ceil_div(steps, splits));
    return each * INTERLEAVED_LATENCY_US + waves * (INTERLEAVED_TILE_US + each * shared_us) + reduction_us(p, splits);
  });
  return plan;
}

SplitKPlan split_k_plan(const SgemmArgs& p, const SliceTile& tile) {
  SplitKPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = tiles_of(p, tile), steps = ceil_div(p.k, SliceTile::BK);
  if (tiles > 2 * PLAN_MULTIPROCESSORS || steps < 4) return plan;
  const int64_t most = steps / 2, limit = deepest_allowed(p);
  int64_t fewest = 1;
  while (fewest < most && slices_depth(p.k, int(fewest)) > limit) ++fewest;
  const double k_us = SLICES_K_US + SLICES_OUTPUT_K_US * double(tile.BM * tile.BN);
  plan.splits = least_of_waves(tiles, steps, 3, fewest, most, [&](int64_t splits, double waves) {
    return waves * (SLICES_TILE_US + double(slices_range(p.k, int(splits))) * k_us) + reduction_us(p, splits);
  });
  return plan;
}

SgemmArgs turned(const SgemmArgs& p, const MixedTile& tile) { return tile.tall() ? long_operand_left(p) : p; }

SplitKPlan split_k_plan(const SgemmArgs& call, const MixedTile& tile) {
  const SgemmArgs p = turned(call, tile);
  SplitKPlan plan{1, ceil_div(p.n, 4) * 4};
  const int64_t tiles = tiles_of(p, tile), units = ceil_div(p.k, MixedTile::K_UNIT);
  if (tile.k_groups == 1 || tiles > MIXED_MOST_TILES || units < 8) return plan;
  const int64_t most = units / 4, limit = deepest_allowed(p);
  int64_t fewest = 1;
  while (fewest < most && mixed_depth(p.k, tile.k_groups, int(fewest)) > limit) ++fewest;
  const double k_us = MIXED_OUTPUT_K_US * double(tile.BM * tile.BN);
  plan.splits = least_of_waves(tiles, units, MIXED_MOST_WAVES, fewest, most, [&](int64_t splits, double waves) {
    const double range = double(mixed_range(p.k, int(splits)));
    return range * MIXED_K_US + waves * (MIXED_TILE_US + range * k_us) + reduction_us(p, splits);
  });
  return plan;
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

bool sums_in_runs(const SgemmArgs& p, const ClusterSplitKTile& tile) {
  return warp_range(p.k, tile) > WARP_RUN && deepest_allowed(p) != any_depth;
}

const ShortKTile& short_k_tile(const SgemmArgs& p) {
  const bool fills = tiles_of(p, short_k_large) >= PLAN_MULTIPROCESSORS;
  if (fills && p.k <= 16 && p.n >= 128) return short_k_large;
  if (fills || tiles_of(p, short_k_square) >= 256) return short_k_square;
  return tiles_of(p, short_k_few) <= short_k_few.blocks * PLAN_MULTIPROCESSORS ? short_k_few : short_k_small;
}

int64_t accumulation_depth(const SgemmArgs& p, const PipelinedTile& tile) {
  if (tile.persistent() && !tile.split_k) return sequential_depth(p);
  const int64_t k = ceil_div(p.k, tile.cluster_k);
  return depth_of_splits(k, tile.k_groups, false, split_k_plan(p, tile).splits, step_of(tile)) + tile.cluster_k - 1;
}

int64_t accumulation_depth(const SgemmArgs& p, const ClusterSplitKTile& tile) {
  const int64_t range = warp_range(p.k, tile);
  const int64_t of_a_warp = sums_in_runs(p, tile) ? WARP_RUN + ceil_div(range, WARP_RUN) - 1 : range;
  return of_a_warp + tile.k_groups + tile.cluster_k - 2;
}

int64_t accumulation_depth(const SgemmArgs& p, const InterleavedTile& tile) {
  return depth_of_splits(p.k, tile.k_groups, true, split_k_plan(p, tile).splits);
}

int64_t accumulation_depth(const SgemmArgs& p, const SliceTile& tile) {
  return slices_depth(p.k, split_k_plan(p, tile).splits);
}

int64_t accumulation_depth(const SgemmArgs& p, const MixedTile& tile) {
  return mixed_depth(p.k, tile.k_groups, split_k_plan(p, tile).splits);
}

std::size_t workspace_bytes(const SgemmArgs& p, const PipelinedTile& tile) {
  const SplitKPlan plan = split_k_plan(p, tile);
  return plan.splits > 1 ? split_k_bytes(p, plan) : stream_k_bytes(p, tile);
}

std::size_t workspace_bytes(const SgemmArgs& p, const InterleavedTile& tile) {
  return split_k_bytes(p, split_k_plan(p, tile));
}

std::size_t workspace_bytes(const SgemmArgs& p, const SliceTile& tile) {
  return split_k_bytes(p, split_k_plan(p, tile));
}

std::size_t workspace_bytes(const SgemmArgs& p, const MixedTile& tile) {
  return split_k_bytes(turned(p, tile), split_k_plan(p, tile));
}

}  // namespace fl
