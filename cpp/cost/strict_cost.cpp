#include "cost/strict_cost.h"

#include <algorithm>

#include "core/device_spec.h"
#include "core/layout.h"
#include "plan/strict_plan.h"

namespace fl {
namespace {

constexpr double STREAM_K_US = 10;

int64_t multiprocessors() { return h200_spec().multiprocessors; }

template <class Tile>
int64_t tiles_of(const SgemmArgs& p, const Tile& tile) {
  return ceil_div(p.m, tile.BM) * ceil_div(p.n, tile.BN) * p.batch;
}

double reduction_us(const SgemmArgs& p, int splits) {
  return 2.6 + double(splits) * double(p.m) * double(p.n) * double(p.batch) * 4 / 3e6;
}

// How an operand's tiles arrive: `contiguous` where neighbours in shared memory are neighbours in the operand.
double copy_share(const ConstMatrix& x, bool contiguous, double for_an_fma, bool a_along_k) {
  if (a_along_k) return !contiguous ? 0.07 : aligned16(x) ? 0.0 : 4 * for_an_fma;
  if (aligned16(x)) return contiguous ? 0.0 : 0.06;
  return contiguous ? std::min(8 * for_an_fma, 0.2) : std::min(7 * for_an_fma, 0.16);
}

// How much longer a step along k of a BM x BN tile takes where operands travel by 4-byte copies: the more the less FMAs
// there are for a float copied, and a little more where they are transposed on the way. Tiles of A have m contiguous,
// or k in the kernels with a pipeline for each warp.
double copy_factor(const SgemmArgs& p, double BM, double BN, bool a_along_k) {
  const double for_an_fma = (BM + BN) / (BM * BN);
  return 1.0 + copy_share(p.a, (p.a.cs == 1) == a_along_k, for_an_fma, a_along_k) +
         copy_share(p.b, p.b.cs == 1, for_an_fma, a_along_k);
}

// Whether a kernel for full tiles takes it, whose blocks step along k by `step` together.
bool full_tiles(const SgemmArgs& p, int64_t BM, int64_t BN, int64_t step) {
  const bool c_order = p.a.cs == 1 && p.b.cs == 1 && aligned16(p.a) && aligned16(p.b) && aligned16(p.c);
  return c_order && p.batch == 1 && p.m % BM == 0 && p.n % BN == 0 && p.k % step == 0;
}

// Storing C, in nanoseconds for each output of a tile, where nothing else goes on meanwhile.
double store_ns(const SgemmArgs& p) { return aligned16(p.c) ? 0.0 : 0.1; }

// How many blocks run at a time: one on each multiprocessor, or 120 in fours, because a cluster has to find its
// multiprocessors in one part of the chip.
int64_t blocks_at_a_time(int cluster) { return cluster == 4 ? 120 : multiprocessors(); }

// A wave of tiles: a block does its share of k in whole steps, and one that is not whole costs half of what it lacks.
template <class Tile>
double wave_us(const SgemmArgs& p, const Tile& tile, int step, int tile_ns, double ps_per_k, bool a_along_k) {
  const double whole = double(ceil_div(p.k, step * tile.cluster_k) * step);
  const double k = 0.5 * (whole + double(p.k) / tile.cluster_k);
  const double ns = tile_ns + store_ns(p) * tile.BM * tile.BN;
  return 1e-3 * ns + 1e-6 * ps_per_k * k * copy_factor(p, tile.BM, tile.BN, a_along_k);
}

template <class Tile>
double blocks_of(const SgemmArgs& p, const Tile& tile) {
  return double(ceil_div(p.m, tile.BM)) * double(ceil_div(p.n, tile.BN)) * double(p.batch) * tile.cluster_k;
}

double waves_of(double blocks, int cluster) {
  const double room = double(blocks_at_a_time(cluster));
  return double(int64_t((blocks + room - 1) / room));
}

// With split-K `p` is the product of all ranges, as a batch.
double pipelined_us(const SgemmArgs& p, const PipelinedTile& tile, const PipelinedCost& cost, bool may_stream_k) {
  const bool tma = cost.tma_percent < 100 && full_tiles(p, tile.BM, tile.BN, tile.BK * tile.cluster_k);
  const int step = tile.k_groups > 1 ? tile.BK * tile.k_groups : 2;  // a group alone ends at any pair of k
  const double ps_per_k = tma ? 0.01 * cost.tma_percent * cost.ps_per_k : cost.ps_per_k;
  const int64_t room = blocks_at_a_time(tile.cluster_k);
  const bool stream_k = may_stream_k && stream_k_pays(p, tile, room);
  const double blocks = blocks_of(p, tile);
  const double waves = stream_k ? blocks / double(room) : waves_of(blocks, tile.cluster_k);
  return 1e-3 * cost.start_ns + (stream_k ? STREAM_K_US : 0.0) +
         waves * wave_us(p, tile, step, cost.tile_ns, ps_per_k, false);
}

// 16-byte copies and rows of A that have k contiguous: 0.56 of what it takes without.
double warp_tile_factor(const SgemmArgs& p) {
  return 1.0 - 0.22 * (p.a.cs == 1 && aligned16(p.a)) - 0.22 * (p.b.cs == 1 && aligned16(p.b));
}

double interleaved_factor(const SgemmArgs& p) {
  const auto share = [](const ConstMatrix& x, bool contiguous) {
    return !contiguous ? 0.11 : aligned16(x) ? 0.0 : 0.1;
  };
  return 1.0 + share(p.a, p.a.cs != 1) + share(p.b, p.b.cs == 1);
}

}  // namespace

double cost_us(const SgemmArgs& p, const PipelinedTile& tile, const PipelinedCost& cost) {
  const int splits = split_k_plan(p, tile).splits;
  SgemmArgs part = p;
  part.k = ceil_div(p.k, splits), part.batch = p.batch * splits;
  const bool full = tiles_of(part, tile) > multiprocessors() / 2;
  return pipelined_us(part, tile, cost, tile.stream_k && splits == 1) + (full ? 1e-3 * cost.full_ns : 0.0) +
         (splits > 1 ? reduction_us(p, splits) : 0.0);
}

// By TMA it takes 0.78 to 0.82 of the time at k = 1024.
double cost_us(const SgemmArgs& p, const ClusterSplitKTile& tile, const ClusterSplitKCost& cost) {
  const double us =
      waves_of(blocks_of(p, tile), tile.cluster_k) * wave_us(p, tile, tile.step(), cost.tile_ns, cost.ps_per_k, true);
  return (full_tiles(p, tile.BM, tile.BN, tile.step() * tile.cluster_k) ? 0.82 : 1.0) * us;
}

double cost_us(const SgemmArgs& p, const InterleavedTile& tile, const InterleavedCost& cost) {
  const int splits = split_k_plan(p, tile).splits;
  const double blocks = double(tiles_of(p, tile)) * splits, room = double(multiprocessors());
  const double most = double(int64_t((blocks + (room - 1)) / room)), k = double(ceil_div(p.k, splits));
  const double written = double(p.m) * double(p.n) * double(p.batch) * splits * (aligned16(p.c) ? 1.0 : 1.34);
  const double us = 1e-3 * cost.start_ns + 1e-6 * cost.block_ps_per_k * k +
                    most * (1e-3 * cost.tile_ns + 1e-6 * cost.ps_per_k * k * interleaved_factor(p)) +
                    1e-9 * cost.fs_per_output * written + (splits > 1 ? reduction_us(p, splits) - 0.4 : 0.0);
  return us > 50 ? 1.08 * us : us;  // fitted to shorter products
}

double cost_us(const SgemmArgs& p, const WarpTile& tile, const WarpTileCost& cost) {
  const int64_t tiles = tiles_of(p, tile);
  const double k = double(ceil_div(p.k, 16) * 16);
  return 1e-3 * cost.start_ns +
         double(ceil_div(tiles, multiprocessors() * tile.warps_per_sm())) * 1e-6 * cost.warp_ps_per_k * k +
         double(ceil_div(tiles, multiprocessors())) * (1e-3 * cost.tile_ns + 1e-6 * cost.ps_per_k * k) *
             warp_tile_factor(p);
}

// Fitted to 145 random shapes: a block's way along k, 37 TFLOP/s in whole tiles, and C at 3.6 TB/s, or 4.9 where its
// rows are aligned.
double short_k_cost(const SgemmArgs& p) {
  const ShortKTile& tile = short_k_is_large(p) ? short_k_large : short_k_small;
  const bool few = short_k_is_few(p);
  const double tiles = double(ceil_div(p.m, tile.BM)) * double(ceil_div(p.n, tile.BN)) * double(p.batch);
  const double write = double(p.m) * double(p.n) * double(p.batch) * (aligned16(p.c) ? 0.82e-6 : 1.1e-6);
  const double k = double(p.k) * (1.0 + 0.044 * (p.a.cs == 1) + 0.044 * (p.b.cs != 1));
  return (few ? 2.04 + 0.0316 * k : 2.75 + 0.041 * k) +
         tiles * double(tile.BM * tile.BN) * k * (few ? 0.035e-6 : 0.054e-6) + write;
}

// Fitted to 212 random shapes. Lanes that read rows of B side by side in k hinder each other where these lie whole
// lines apart: 5 x 73 x 32 takes 3.3 us.
double element_cost(const SgemmArgs& p) {
  const double outputs = double(p.m) * double(p.n) * double(p.batch), k = double(p.k);
  const bool whole_lines = p.b.cs != 1 && p.n > 1 && p.b.cs % 32 == 0;
  return 1.0 + (whole_lines ? 0.08 : 0.0264) * k + outputs * (7.5e-6 + 0.7e-6 * k);
}

}  // namespace fl
