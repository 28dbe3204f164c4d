#include "cost/gemv_cuda_cost.h"

#include <algorithm>
#include <cmath>

#include "core/layout.h"
#include "plan/gemv_cuda_plan.h"

namespace fl {

double gemv_bytes(const SgemvArgs& p) {
  return double(size_of(p.stored[0].element)) * double(p.m) * double(p.n) * double(p.batch);
}

namespace {

double gemv_rows(const SgemvArgs& p) { return double(p.m) * double(p.batch); }  // of all problems

template <class C>
double rate(const SgemvArgs& p, const C& cost, double memory, double l2) {
  return gemv_bytes(p) <= cost.l2_bytes ? l2 : memory;
}

// A few long rows, so that a block shares each.
bool few_rows(const SgemvArgs& p, const DeviceSpec& device) {
  return p.n >= 4096 && gemv_rows(p) <= 8 * device.multiprocessors;
}

// Where clusters share rows: blocks that read.
double row_blocks(const SgemvArgs& p, const DeviceSpec& device, int threads) {
  const int cluster = device.has(feature_clusters) ? blocks_per_row(p, device.multiprocessors, threads) : 1;
  return gemv_rows(p) * cluster;
}

// Warps of `together` rows, 40 on a multiprocessor at a time, each needing a step for every `span` columns.
double ladder_rows(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost, double together,
                   double span, bool is_short) {
  const double turns = std::max(1.0, gemv_rows(p) / (40.0 * device.multiprocessors * together));
  const double bytes_per_us = is_short ? rate(p, cost, cost.short_memory_bytes_per_us, cost.short_l2_bytes_per_us)
                                       : rate(p, cost, cost.memory_bytes_per_us, cost.l2_bytes_per_us);
  const double turn = is_short ? cost.short_turn_us : cost.turn_us;
  return cost.start_us +
         std::max(gemv_bytes(p) / bytes_per_us, (turns - 1) * turn + turns * cost.step_us * double(p.n) / span);
}
double ladder_shared_rows(const SgemvArgs& p, const LadderGemvCost& cost) {
  return cost.shared_start_us +
         gemv_bytes(p) / std::min(cost.shared_memory_bytes_per_us, gemv_rows(p) * cost.shared_block_bytes_per_us);
}
double ladder_columns(const SgemvArgs& p, const LadderGemvCost& cost, bool is_short) {
  const double blocks = double(ceil_div(p.m, 8)) * double(p.batch);
  const double start = cost.columns_start_us + cost.column_us * double(std::min<int64_t>(p.n, 4000));
  const double most = is_short ? cost.columns_short_bytes_per_us : cost.columns_bytes_per_us;
  return start + gemv_bytes(p) / std::min(most, blocks * cost.columns_block_bytes_per_us);
}
// Scalars reach no higher speed in L2 (251 x 10370 transposed: 6.9 us).
bool in_l2(const SgemvArgs& p, const LadderGemvCost& cost) { return gemv_bytes(p) <= cost.l2_bytes; }

}  // namespace

double warp_per_row_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost) {
  if (p.a.cs != 1) return ladder_columns(p, cost, in_l2(p, cost));
  if (few_rows(p, device)) return ladder_shared_rows(p, cost);
  if (p.n <= 64) return ladder_rows(p, device, cost, 4, 64, true);
  return ladder_rows(p, device, cost, 1, 128, false) + (p.n > 256 ? cost.long_us : 0);
}
double warp_per_row_vec4_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost) {
  if (p.a.cs != 1) return ladder_columns(p, cost, p.n < 4096);
  if (few_rows(p, device)) return ladder_shared_rows(p, cost);
  return p.n <= 256 ? ladder_rows(p, device, cost, 4, 128, true) : ladder_rows(p, device, cost, 1, 512, false);
}
double rows_per_warp_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost) {
  if (p.a.cs != 1) return ladder_columns(p, cost, in_l2(p, cost));
  const double lanes = p.n <= 1 ? 1 : (p.n <= 4 ? 4 : (p.n <= 8 ? 8 : (p.n <= 16 ? 16 : 32)));
  return ladder_rows(p, device, cost, 128 / lanes, lanes, false) + (p.n > 256 ? cost.long_us : 0);
}
double rows_per_warp_vec4_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost) {
  if (p.a.cs != 1) return ladder_columns(p, cost, p.n < 4096);
  return ladder_rows(p, device, cost, p.n <= 32 ? 8 : 4, p.n <= 32 ? 32 : 128, false);
}

double short_rows_us(const SgemvArgs& p, const DeviceSpec& device, const ShortRowsCost& cost) {
  if (p.a.cs != 1 || p.n > 256) return NOT_FOR_SHAPE_US;
  const double start = cost.start_us + without_pdl(device, cost.no_pdl_us);
  if (aligned16(p.a))
    return start + gemv_bytes(p) / rate(p, cost, cost.memory_bytes_per_us, cost.l2_bytes_per_us) +
           gemv_rows(p) * cost.row_us;
  return start + gemv_bytes(p) / rate(p, cost, cost.unaligned_memory_bytes_per_us, cost.unaligned_l2_bytes_per_us) +
         gemv_rows(p) * (p.n <= 64 ? cost.row_us : cost.unaligned_row_us);
}

double long_rows_us(const SgemvArgs& p, const DeviceSpec& device, const LongRowsCost& cost) {
  if (p.a.cs != 1 || !aligned16(p.a)) return NOT_FOR_SHAPE_US;
  const double no_pdl_us = without_pdl(device, cost.no_pdl_us);
  const double read = gemv_bytes(p) / rate(p, cost, cost.memory_bytes_per_us, cost.l2_bytes_per_us);
  if (few_rows(p, device) && gemv_rows(p) < device.multiprocessors) {
    const int threads = long_rows_threads(p, device.multiprocessors);
    const double blocks = row_blocks(p, device, threads);
    const bool wide = threads == 1024 && device.has(feature_clusters);
    const double waves = wide ? std::ceil(blocks / (0.9 * device.multiprocessors)) : 1.0;
    const double start = cost.few_start_us + (wide ? cost.wide_us : 0.0);
    return no_pdl_us + waves * (start + std::max(read / waves, gemv_bytes(p) / (blocks * cost.few_block_bytes_per_us)));
  }
  return cost.start_us + no_pdl_us +
         std::max(read, gemv_rows(p) * cost.row_us + gemv_bytes(p) / cost.rows_bytes_per_us);
}

double any_rows_us(const SgemvArgs& p, const DeviceSpec& device, const AnyRowsCost& cost) {
  if (p.a.cs != 1) return NOT_FOR_SHAPE_US;
  const bool whole_blocks = p.n >= 1024 && gemv_rows(p) < cost.few_rows;
  const double start = cost.start_us + without_pdl(device, cost.no_pdl_us) + (whole_blocks ? cost.barriers_us : 0);
  const double whole = p.n >= 2048 && gemv_bytes(p) > cost.l2_bytes ? cost.long_bytes_per_us : cost.bytes_per_us;
  const double blocks = whole_blocks ? row_blocks(p, device, 256) : gemv_rows(p);
  const double apart = p.x.inc == 1 ? 0.0 : gemv_rows(p) * double(p.n) / device.multiprocessors;
  return start + gemv_bytes(p) / std::min(whole, blocks * cost.row_block_bytes_per_us) + gemv_rows(p) * cost.row_us +
         1e-6 * cost.strided_ps * apart;
}

static bool has_second_wave(const SgemvArgs& p, const DeviceSpec& device) {
  const auto slices = [&](int outputs) { return ceil_div(p.m, outputs) * p.batch; };
  const int64_t multiprocessors = device.multiprocessors;
  const bool vectors = aligned16(p.a);
  int64_t blocks = slices(vectors && slices(128) >= 32 ? 128 : slices(32) >= (vectors ? 3 : 16) ? 32 : 8);
  for (int cluster = 1; cluster < 8 && blocks < 3 * multiprocessors / 2; cluster *= 2) blocks *= 2;
  return blocks > 2 * multiprocessors && blocks < 3 * multiprocessors;
}

double cluster_columns_us(const SgemvArgs& p, const DeviceSpec& device, const ClusterColumnsCost& cost) {
  if (p.a.cs == 1) return NOT_FOR_SHAPE_US;
  const bool vectors = aligned16(p.a);
  const auto slices = [&](int outputs) { return double(ceil_div(p.m, outputs)) * double(p.batch); };
  const double narrow = slices(slices(32) >= (vectors ? 3 : 16) ? 32 : 8);
  const double blocks = narrow * (narrow <= 7 ? 16 : 8);
  // Tiles of 128 outputs leave no room for clusters where they are many, nor for long loops where columns are few.
  const double whole = !vectors                                     ? cost.unaligned_bytes_per_us
                       : slices(128) > 1.5 * device.multiprocessors ? cost.many_bytes_per_us
                       : p.n < 1000                                 ? cost.short_bytes_per_us
                                                                    : cost.bytes_per_us;
  const double barriers = cost.barriers_us * std::min(1.0, double(p.n) / 256);
  const double start = cost.start_us + barriers + cost.slice_us * (vectors ? slices(128) : narrow);
  const double block = vectors ? cost.aligned_block_bytes_per_us : cost.unaligned_block_bytes_per_us;
  return start +
         gemv_bytes(p) / std::min(whole * (has_second_wave(p, device) ? cost.second_wave : 1.0), blocks * block);
}

double split_columns_us(const SgemvArgs& p, const DeviceSpec& device, const SplitColumnsCost& cost) {
  if (p.a.cs == 1) {
    const SplitRowsPlan rows = split_rows_plan(p);
    if (rows.splits == 0) return NOT_FOR_SHAPE_US;
    const double bytes = gemv_bytes(p) + 4.0 * double(p.n);
    const double of_blocks = gemv_rows(p) * rows.splits * cost.each_block_bytes_per_us;
    return cost.start_us + without_pdl(device, cost.no_pdl_us) + cost.sums_us * (rows.left > 0 ? 2 : 1) +
           bytes / std::min(rate(p, cost, cost.memory_bytes_per_us, cost.l2_bytes_per_us), of_blocks);
  }
  const SplitColumnsPlan plan = split_columns_plan(p);
  const double blocks = double(ceil_div(p.m, plan.outputs)) * double(p.batch) * plan.splits;
  const double each = std::max(1.0, blocks / device.multiprocessors);
  const double rounds = std::max(1.0, each * plan.threads / 1024);
  const double whole = plan.vectors ? rate(p, cost, cost.memory_bytes_per_us, cost.l2_bytes_per_us)
                                    : rate(p, cost, cost.unaligned_memory_bytes_per_us, cost.unaligned_l2_bytes_per_us);
  const bool large = plan.threads == 1024;
  const double block_bytes = double(size_of(p.stored[0].element)) * plan.outputs * plan.columns;
  const double read_us = gemv_bytes(p) / whole * plan.sectors_read(gemv_bytes(p) <= cost.l2_bytes);
  const double block_us = large ? each * block_bytes / cost.large_block_bytes_per_us
                                : 1e-3 * cost.column_ns * double(plan.columns_of_thread()) * rounds;
  return cost.start_us + without_pdl(device, cost.no_pdl_us) +
         (plan.splits > 1 ? cost.sums_us + 1e-3 * cost.range_ns * plan.splits : 0) +
         (large ? cost.large_blocks_us * std::ceil(each) : 0) + 1e-3 * cost.block_ns * blocks / device.multiprocessors +
         std::max(read_us, block_us);
}

double short_columns_us(const SgemvArgs& p, const DeviceSpec& device, const ShortColumnsCost& cost) {
  if (p.a.cs == 1) return NOT_FOR_SHAPE_US;
  const bool vectors = aligned16(p.a) && gemv_rows(p) >= 128 * device.multiprocessors, sixteen = !vectors && p.n > 32;
  const double turns = std::ceil(double(p.n) / (sixteen ? 16 : 8)), threads = gemv_rows(p) / (vectors ? 4 : 1);
  const double turn_us = (sixteen ? cost.sixteen_us : cost.eight_us) *
                         (gemv_bytes(p) > cost.l2_bytes ? cost.beyond_l2 : 1) *
                         std::max(1.0, threads / (1024.0 * device.multiprocessors));
  const double read = vectors ? rate(p, cost, cost.memory_bytes_per_us, cost.l2_bytes_per_us)
                              : rate(p, cost, cost.unaligned_memory_bytes_per_us, cost.unaligned_l2_bytes_per_us);
  return cost.start_us + without_pdl(device, cost.no_pdl_us) + std::max(turns * turn_us, gemv_bytes(p) / read);
}

}  // namespace fl
