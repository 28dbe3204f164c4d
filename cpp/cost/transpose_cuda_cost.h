// How long the GPU's transposes take: a start, and bytes at the rate of L2, of its edge, or of what lies beyond;
// no_pdl_us more on a device without programmatic dependent launch.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"

namespace fl {

// By tiles of 32 x 32, of which small and narrow matrices leave much empty. Beyond L2 no kernel of the ladder passes
// memory_bytes_per_us.
FL_COEFFICIENTS(Tile32Cost, start_us, bytes_per_us, memory_bytes_per_us, small_l2_bytes, no_pdl_us);
double tile32_us(const TransposeArgs& p, const DeviceSpec& device, const Tile32Cost& cost);

// Mostly empty tiles are slow: 65536 of 16 x 16 took 66 us, 1000000 x 4 17.
FL_COEFFICIENTS(TiledCost, start_us, small_us, narrow_start_us, narrow_us, l2_bytes_per_us, edge_bytes_per_us,
                memory_bytes_per_us, small_l2_bytes, edge_l2_bytes, no_pdl_us);
double tiled_us(const TransposeArgs& p, const DeviceSpec& device, const TiledCost& cost);

FL_COEFFICIENTS(TiledAnyCost, start_us, few_rows_us, few_columns_tile_us, few_rows_tile_us, l2_bytes_per_us,
                edge_bytes_per_us, memory_bytes_per_us, aligned_memory_bytes_per_us, small_l2_bytes, edge_l2_bytes,
                no_pdl_us);
double tiled_any_us(const TransposeArgs& p, const DeviceSpec& device, const TiledAnyCost& cost);

// Two divisions for each element, and more conflicts of banks where A has few rows.
FL_COEFFICIENTS(PiecesCost, start_us, element_ps, few_rows_element_ps, no_pdl_us);
double pieces_us(const TransposeArgs& p, const DeviceSpec& device, const PiecesCost& cost);

// Narrow matrices by warps of whole lines: lines that 32 lanes do not fill count as full, and blocks of short matrices
// are mostly idle. Beyond L2 rows with gaps between them are written in parts of sectors. Others go to `pieces`.
FL_COEFFICIENTS(NarrowCost, start_us, line_us, matrix_us, l2_bytes_per_us, memory_bytes_per_us, gaps, near_l2_bytes,
                no_pdl_us);
double narrow_us(const TransposeArgs& p, const DeviceSpec& device, const NarrowCost& cost);

}  // namespace fl
