#include "cost/strict_cost.h"

#include <algorithm>
#include <cmath>

#include "core/layout.h"
#include "plan/strict/multistage_plan.h"
#include "plan/strict/pipelined_plan.h"
#include "plan/strict/short_k_plan.h"

namespace fl {
namespace {

double outputs_of(const SgemmArgs& p) { return double(p.m) * double(p.n) * double(p.batch); }

// Floats that a kernel writes, those of rows that are not aligned counted as more.
double written(const SgemmArgs& p, int splits, const CopyCost& copy) {
  return outputs_of(p) * splits * (aligned16(p.c) ? 1.0 : copy.interleaved_unaligned_output);
}

double outputs_across(const SgemmArgs& p) { return p.c.cs == 1 ? 0.0 : outputs_of(p); }

// With programmatic dependent launch the second kernel is there before the first one ends. It reads the ranges of an
// output one after the other.
double reduction_us(const SgemmArgs& p, int splits, const DeviceSpec& device, const CopyCost& copy) {
  return copy.reduction_us + without_pdl(device, copy.reduction_no_pdl_us) + 1e-3 * copy.reduction_split_ns * splits +
         1e-9 * copy.reduction_fs * double(splits) * outputs_of(p);
}

// How an operand's tiles arrive: `contiguous` where neighbours in shared memory are neighbours in the operand.
double copy_share(const ConstMatrix& x, bool contiguous, double for_an_fma, bool a_along_k, const CopyCost& copy) {
  if (a_along_k)
    return !contiguous ? copy.range_transposed : aligned16(x) ? 0.0 : copy.range_unaligned_by_fma * for_an_fma;
  if (aligned16(x)) return contiguous ? 0.0 : copy.transposed;
  return contiguous ? std::min(copy.unaligned_by_fma * for_an_fma, copy.most_unaligned)
                    : std::min(copy.unaligned_transposed_by_fma * for_an_fma, copy.most_unaligned_transposed);
}

// How much longer a step along k of a BM x BN tile takes where operands travel by 4-byte copies: the more the less FMAs
// there are for a float copied, and a little more where they are transposed on the way. Tiles of A have m contiguous,
// or k in the kernels with a pipeline for each warp.
double copy_factor(const SgemmArgs& p, double BM, double BN, bool a_along_k, const CopyCost& copy) {
  const double for_an_fma = (BM + BN) / (BM * BN);
  return 1.0 + copy_share(p.a, (p.a.cs == 1) == a_along_k, for_an_fma, a_along_k, copy) +
         copy_share(p.b, p.b.cs == 1, for_an_fma, a_along_k, copy);
}

// Whether a kernel for full tiles takes it, whose blocks step along k by `step` together.
bool full_tiles(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t step) {
  const bool c_order = p.a.cs == 1 && p.b.cs == 1 && aligned16(p.a) && aligned16(p.b) && aligned16(p.c);
  return c_order && p.batch == 1 && p.m % BM == 0 && p.n % BN == 0 && p.k % step == 0;
}

// How many blocks run at a time: one on each multiprocessor, or not quite as many in fours, because a cluster has to
// find its multiprocessors in one part of the chip.
int64_t blocks_at_a_time(int cluster, const DeviceSpec& device, const CopyCost& copy) {
  if (cluster != 4) return device.multiprocessors;
  return std::max<int64_t>(std::llround(copy.room_of_clusters_of_four * device.multiprocessors), 1);
}

// A wave of tiles: a block does its share of k in whole steps, and one that is not whole costs half of what it lacks.
template <class Tile>
double wave_us(const SgemmArgs& p, const Tile& tile, int step, double tile_ns, double k_ps, bool a_along_k,
               const CopyCost& copy) {
  const double whole = double(ceil_div(p.k, step * tile.cluster_k) * step);
  const double k = 0.5 * (whole + double(p.k) / tile.cluster_k);
  // Storing C, where nothing else goes on meanwhile.
  const double store_us = aligned16(p.c) ? 0.0 : 1e-9 * copy.unaligned_output_fs * tile.BM * tile.BN;
  return 1e-3 * tile_ns + store_us + 1e-6 * k_ps * k * copy_factor(p, tile.BM, tile.BN, a_along_k, copy);
}

double waves_of(double blocks, int64_t room) { return double(int64_t((blocks + double(room) - 1) / double(room))); }

// What k is rounded up to. A group alone ends at any pair of k. Where each group has blocks of k, four warps are enough
// for the schedulers: as many groups as have these take a block each at a time.
int step_of(const PipelinedTile& tile) {
  if (tile.k_groups == 1) return 2;
  if (!tile.in_blocks) return tile.BK * tile.k_groups;
  return static_cast<int>(REPRODUCIBLE_BLOCK) * std::max(tile.k_groups * 4 * 32 / tile.math_threads(), 1);
}

// With split-K `p` is the product of all ranges, as a batch.
double pipelined_us(const SgemmArgs& p, const PipelinedTile& tile, const DeviceSpec& device, const PipelinedCost& cost,
                    const CopyCost& copy, bool may_stream_k) {
  const int step = step_of(tile);
  const int64_t room = blocks_at_a_time(tile.cluster_k, device, copy);
  const bool stream_k = may_stream_k && stream_k_pays(p, tile, room);
  const bool tma = cost.tma < 1 && (!stream_k || tile.in_blocks) &&
                   full_tiles(p, tile.BM, tile.BN, tile.tma_tile().BK * tile.cluster_k);
  const double k_ps = tma ? cost.tma * cost.k_ps : cost.k_ps;
  const double blocks = double(computed_tiles(p, tile)) * tile.cluster_k;
  const double waves = stream_k ? blocks / double(room) : waves_of(blocks, room);
  return 1e-3 * (cost.start_ns + without_pdl(device, cost.no_pdl_ns)) + (stream_k ? copy.stream_k_us : 0.0) +
         waves * wave_us(p, tile, step, cost.tile_ns, k_ps, false, copy);
}

// What the copies of an operand add to a step along k of blocks that copy together.
double together_share(const ConstMatrix& x, bool contiguous, double transposed, double unaligned) {
  return !contiguous ? transposed : aligned16(x) ? 0.0 : unaligned;
}
double together_factor(const SgemmArgs& p, const CopyCost& copy) {
  return 1.0 + together_share(p.a, p.a.cs != 1, copy.interleaved_transposed, copy.interleaved_unaligned) +
         together_share(p.b, p.b.cs == 1, copy.interleaved_transposed, copy.interleaved_unaligned);
}
double slices_factor(const SgemmArgs& p, bool async, const SliceCost& cost) {
  const double unaligned = async ? cost.unaligned : cost.unaligned_by_registers;
  return 1.0 + together_share(p.a, p.a.cs == 1, async ? cost.transposed_a : cost.transposed_a_by_registers, unaligned) +
         together_share(p.b, p.b.cs == 1, async ? cost.transposed_b : cost.transposed_b_by_registers, unaligned);
}

// What spread copies of an operand add to a k. `across` of its rows or columns are contiguous, or k is.
double spread_copies_ps(const ConstMatrix& x, bool contiguous, int64_t across, int tile, const SpreadCost& cost) {
  if (contiguous && aligned16(x) && across % 4 == 0) return 0.0;
  return (contiguous ? cost.by4_ps : cost.transposed_ps) * tile;
}

#define COMMON_COST(name, chip, commit, shapes, residual, ...) constexpr CopyCost chip##_##name{__VA_ARGS__};
#include "cost/measured.def"

CopyCost copy_cost(const DeviceSpec& device) { return carried_over(h200_strict_copies, h200_spec(), device); }

}  // namespace

double slab_addition_us(const SgemmArgs& p, int slabs, const DeviceSpec& device) {
  return reduction_us(p, slabs, device, copy_cost(device));
}

double cost_us(const SgemmArgs& p, const PipelinedTile& tile, const DeviceSpec& device, const PipelinedCost& cost) {
  const CopyCost copy = copy_cost(device);
  const int splits = split_k_plan(p, tile).splits;
  SgemmArgs part = p;
  part.k = ceil_div(p.k, splits), part.batch = p.batch * splits;
  part.symmetric = computes_triangle(p, tile);
  return pipelined_us(part, tile, device, cost, copy, tile.stream_k && splits == 1) +
         1e-9 * cost.output_fs * written(p, splits, copy) + (splits > 1 ? reduction_us(p, splits, device, copy) : 0.0);
}

double cost_us(const SgemmArgs& p, const ClusterSplitKTile& tile, const DeviceSpec& device,
               const ClusterSplitKCost& cost) {
  const CopyCost copy = copy_cost(device);
  const double waves =
      waves_of(double(tiles_of(p, tile) * tile.cluster_k), blocks_at_a_time(tile.cluster_k, device, copy));
  const double us = waves * wave_us(p, tile, tile.step(), cost.tile_ns, cost.k_ps, true, copy);
  return (full_tiles(p, tile.BM, tile.BN, tile.step() * tile.cluster_k) ? cost.tma : 1.0) * us;
}

double cost_us(const SgemmArgs& p, const MultistageTile& tile, const DeviceSpec& device, const TogetherCost& cost) {
  const CopyCost copy = copy_cost(device);
  const int splits = split_k_plan(p, tile).splits;
  const double most = double(ceil_div(tiles_of(p, tile) * splits, int64_t{device.multiprocessors}));
  const double k = double(ceil_div(p.k, splits));
  const bool async = device.has(feature_cp_async);
  const double block_k_ps = (async ? 1.0 : cost.block_by_registers) * cost.block_k_ps,
               k_ps = (async ? 1.0 : cost.by_registers) * cost.k_ps;
  const double us = 1e-3 * (cost.start_ns + without_pdl(device, cost.no_pdl_ns)) + 1e-6 * block_k_ps * k +
                    1e-3 * cost.round_ns * std::ceil(most / tile.blocks) +
                    most * (1e-3 * cost.tile_ns + 1e-6 * k_ps * k * together_factor(p, copy)) +
                    1e-9 * cost.output_fs * written(p, splits, copy) +
                    (splits > 1 ? reduction_us(p, splits, device, copy) + copy.interleaved_reduction_us : 0.0);
  return us > copy.interleaved_long_us ? copy.interleaved_long * us : us;  // fitted to shorter products
}

double cost_us(const SgemmArgs& p, const MultistageTile& tile, const DeviceSpec& device, const SliceCost& cost) {
  const CopyCost copy = copy_cost(device);
  const int splits = split_k_plan(p, tile).splits;
  const int64_t most = ceil_div(tiles_of(p, tile) * splits, int64_t{device.multiprocessors});
  const double k = double(split_k_rule(tile).range(p.k, splits)), waves = double(ceil_div(most, int64_t{tile.blocks}));
  const bool async = device.has(feature_cp_async);
  const double copies = slices_factor(p, async, cost);
  const double block_k_ps = (async ? 1.0 : cost.block_by_registers) * cost.block_k_ps,
               k_ps = (async ? 1.0 : cost.by_registers) * cost.k_ps;
  return 1e-3 * (cost.start_ns + without_pdl(device, cost.no_pdl_ns)) + waves * 1e-6 * block_k_ps * k * copies +
         (splits > 1 ? reduction_us(p, splits, device, copy) + copy.interleaved_reduction_us : 0.0) +
         double(most) * (1e-3 * cost.tile_ns + 1e-6 * k_ps * k * copies);
}

double cost_us(const SgemmArgs& call, const MultistageTile& tile, const DeviceSpec& device, const SpreadCost& cost) {
  const CopyCost copy = copy_cost(device);
  const SgemmArgs p = transposed_problem(call, tile);
  const int splits = split_k_plan(call, tile).splits;
  const double most = double(ceil_div(tiles_of(p, tile) * splits, int64_t{device.multiprocessors}));
  const int64_t range = splits > 1 ? split_k_rule(tile).range(p.k, splits) : p.k;
  const double k = double(range), rounds = std::ceil(most / tile.blocks);
  const bool async = device.has(feature_cp_async), tail = range % tile.BK != 0;
  const double block_k_ps = (async ? 1.0 : cost.block_by_registers) * cost.block_k_ps;
  const double k_ps = (async ? 1.0 : cost.by_registers) * cost.k_ps +
                      spread_copies_ps(p.a, p.a.cs != 1, p.m, tile.BM, cost) +
                      spread_copies_ps(p.b, p.b.cs == 1, p.n, tile.BN, cost);
  return 1e-3 * (cost.start_ns + without_pdl(device, cost.no_pdl_ns) + rounds * cost.round_ns +
                 (async ? tail * cost.tail_ns : cost.by_registers_ns)) +
         1e-6 * block_k_ps * k + 1e-9 * cost.output_fs * written(p, splits, copy) +
         (splits > 1 ? reduction_us(p, splits, device, copy) : 1e-9 * cost.across_fs * outputs_across(p)) +
         most * (1e-3 * cost.tile_ns + 1e-6 * k_ps * k);
}

double cost_us(const SgemmArgs& p, const WarpTile& tile, const DeviceSpec& device, const WarpTileCost& cost) {
  const int64_t tiles = tiles_of(p, tile), multiprocessors = device.multiprocessors;
  const double k = double(ceil_div(p.k, 16) * 16);
  const bool async = device.has(feature_cp_async);
  const int by16 = (p.a.cs == 1 && aligned16(p.a)) + (p.b.cs == 1 && aligned16(p.b));
  const double copies = async ? 1.0 - cost.aligned * by16 : cost.by_registers;
  const double alone = double(ceil_div(tiles, multiprocessors * tile.warps_per_sm())) * 1e-6 * cost.warp_k_ps * k;
  const double together = double(ceil_div(tiles, multiprocessors)) * (1e-3 * cost.tile_ns + 1e-6 * cost.k_ps * k);
  return 1e-3 * (cost.start_ns + without_pdl(device, cost.no_pdl_ns)) + (alone + together) * copies;
}

double short_k_us(const SgemmArgs& p, const DeviceSpec& device, const ShortKCost& cost) {
  const ShortKTile& tile = short_k_tile(p);
  const bool few = &tile == &short_k_few;
  const auto tiles = double(tiles_of(p, tile));
  const double k = double(p.k) * (1.0 + cost.transposed * (p.a.cs == 1) + cost.transposed * (p.b.cs != 1)) *
                   (device.has(feature_cp_async) ? 1.0 : cost.by_registers);
  const double start = few ? cost.few_start_us + 1e-6 * cost.few_k_ps * k : cost.start_us + 1e-6 * cost.k_ps * k;
  const double fmas = tiles * double(tile.BM * tile.BN) * k / device.multiprocessors;
  const double written = 1e-9 * outputs_of(p) * (aligned16(p.c) ? cost.output_fs : cost.unaligned_output_fs);
  return start + without_pdl(device, cost.no_pdl_us) + 1e-6 * (few ? cost.few_output_k_ps : cost.output_k_ps) * fmas +
         written;
}

// Lanes stand side by side along the rows of C.
static double lines_of_a_warp(const SgemmArgs& p) {
  const double rows = std::min({1.0 + 31.0 / double(std::max<int64_t>(p.n, 1)), double(p.m), 32.0});
  const double columns = std::min(double(p.n), 32.0);
  return (p.a.cs == 1 ? std::max(rows - 1.0, 0.0) : 0.0) + (p.b.cs != 1 ? std::max(columns - 1.0, 0.0) : 0.0);
}

double element_us(const SgemmArgs& p, const DeviceSpec& device, const ElementCost& cost) {
  const double outputs = outputs_of(p) / device.multiprocessors, k = double(p.k);
  const bool whole_lines = p.b.cs != 1 && p.n > 1 && p.b.cs % 32 == 0;
  return cost.start_us + without_pdl(device, cost.no_pdl_us) +
         1e-6 * (whole_lines ? cost.whole_lines_k_ps : cost.k_ps) * k +
         1e-6 * outputs * (cost.output_ps + k * (cost.output_k_ps + cost.line_k_ps * lines_of_a_warp(p)));
}

}  // namespace fl
