#include "cost/transpose_cuda_cost.h"

#include <algorithm>

#include "cost/rules.h"

namespace fl {
namespace {

double elements_of(const TransposeArgs& p) { return double(p.m) * double(p.n) * double(p.batch); }
double bytes_of(const TransposeArgs& p) { return 8.0 * elements_of(p); }

}  // namespace

double tile32_us(const TransposeArgs& p, const DeviceSpec& device, const Tile32Cost& cost) {
  const double bytes = bytes_of(p);
  const double tiles = double(ceil_div(p.m, 32)) * double(ceil_div(p.n, 32)) * double(p.batch);
  const double beyond = std::min(cost.bytes_per_us, cost.memory_bytes_per_us);
  return cost.start_us + without_pdl(device, cost.no_pdl_us) +
         std::max(bytes / (bytes > cost.small_l2_bytes ? beyond : cost.bytes_per_us), tiles * 8192 / cost.bytes_per_us);
}

double tiled_us(const TransposeArgs& p, const DeviceSpec& device, const TiledCost& cost) {
  const double bytes = bytes_of(p), batch = double(p.batch);
  const double tiles = p.m <= 32 && p.n <= 32   ? cost.small_us * batch
                       : p.m <= 16 || p.n <= 16 ? cost.narrow_us * double(ceil_div(std::max(p.m, p.n), 128)) * batch
                                                : 0.0;
  const double rate = bytes <= cost.small_l2_bytes  ? cost.l2_bytes_per_us
                      : bytes <= cost.edge_l2_bytes ? cost.edge_bytes_per_us
                                                    : cost.memory_bytes_per_us;
  return cost.start_us + without_pdl(device, cost.no_pdl_us) + (p.m <= 16 || p.n <= 16 ? cost.narrow_start_us : 0.0) +
         std::max(tiles, bytes / rate);
}

double tiled_any_us(const TransposeArgs& p, const DeviceSpec& device, const TiledAnyCost& cost) {
  const double bytes = bytes_of(p), batch = double(p.batch);
  const double tiles = p.n <= 32   ? cost.few_columns_tile_us * double(ceil_div(p.m, 128)) * batch
                       : p.m <= 32 ? cost.few_rows_tile_us * double(ceil_div(p.n, 32)) * batch
                                   : 0.0;
  const bool large_aligned = p.m >= 1024 && p.n >= 1024 && row_major_aligned16(p) == nullptr;
  const double rate = bytes <= cost.small_l2_bytes  ? cost.l2_bytes_per_us
                      : bytes <= cost.edge_l2_bytes ? cost.edge_bytes_per_us
                      : large_aligned               ? cost.aligned_memory_bytes_per_us
                                                    : cost.memory_bytes_per_us;
  return cost.start_us + without_pdl(device, cost.no_pdl_us) + (p.m <= 32 ? cost.few_rows_us : 0) +
         std::max(tiles, bytes / rate);
}

double pieces_us(const TransposeArgs& p, const DeviceSpec& device, const PiecesCost& cost) {
  const bool few_rows = p.batch == 1 && p.n > p.m;
  return cost.start_us + without_pdl(device, cost.no_pdl_us) +
         1e-6 * elements_of(p) / device.multiprocessors * (few_rows ? cost.few_rows_element_ps : cost.element_ps);
}

double narrow_us(const TransposeArgs& p, const DeviceSpec& device, const NarrowCost& cost) {
  const int64_t width = std::min(p.m, p.n), length = std::max(p.m, p.n);
  if (width < 2 || width > 16) return NOT_FOR_SHAPE_US;
  const double bytes = 8.0 * double(width) * double(ceil_div(length, 32) * 32) * double(p.batch);
  const bool far = bytes_of(p) > cost.near_l2_bytes, gaps = p.m < p.n && p.b.rs != p.m;
  const double moved_us = bytes / (far ? cost.memory_bytes_per_us : cost.l2_bytes_per_us);
  return cost.start_us + without_pdl(device, cost.no_pdl_us) + cost.line_us * double(width) +
         std::max(moved_us * (far && gaps ? cost.gaps : 1.0), cost.matrix_us * double(p.batch));
}

}  // namespace fl
