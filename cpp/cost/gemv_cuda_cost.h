// How long the GPU's SGEMV kernels take.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"

namespace fl {

double gemv_bytes(const SgemvArgs& p);  // of A, for each problem

// A ladder kernel. Rows: a warp has a step for each so many columns and a turn for each wave of warps. Few long rows: a
// block shares each. Columns: a block for each slice of eight outputs, however long the columns' row is.
FL_COEFFICIENTS(LadderGemvCost, start_us, short_memory_bytes_per_us, short_l2_bytes_per_us, short_turn_us,
                memory_bytes_per_us, l2_bytes_per_us, turn_us, step_us, long_us, shared_start_us,
                shared_memory_bytes_per_us, shared_block_bytes_per_us, columns_start_us, column_us,
                columns_short_bytes_per_us, columns_bytes_per_us, columns_block_bytes_per_us, l2_bytes);
double warp_per_row_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost);
double warp_per_row_vec4_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost);
double rows_per_warp_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost);
double rows_per_warp_vec4_us(const SgemvArgs& p, const DeviceSpec& device, const LadderGemvCost& cost);

// no_pdl_us: what a call takes longer without programmatic dependent launch.
// Bytes per microsecond with and without 16-byte loads, l2 while A stays there.
FL_COEFFICIENTS(ShortRowsCost, start_us, memory_bytes_per_us, l2_bytes_per_us, row_us, unaligned_memory_bytes_per_us,
                unaligned_l2_bytes_per_us, unaligned_row_us, l2_bytes, no_pdl_us);
double short_rows_us(const SgemvArgs& p, const DeviceSpec& device, const ShortRowsCost& cost);
// row_us: the launch of a row's block and its end. wide_us: what clusters of blocks of 1024 threads take more to begin.
FL_COEFFICIENTS(LongRowsCost, start_us, memory_bytes_per_us, l2_bytes_per_us, row_us, rows_bytes_per_us, few_start_us,
                wide_us, few_block_bytes_per_us, l2_bytes, no_pdl_us);
double long_rows_us(const SgemvArgs& p, const DeviceSpec& device, const LongRowsCost& cost);
// strided_ps for each element of a multiprocessor, where those of x are apart.
// Blocks meet at a barrier, clusters at two.
FL_COEFFICIENTS(AnyRowsCost, start_us, barriers_us, few_rows, long_bytes_per_us, bytes_per_us, row_block_bytes_per_us,
                row_us, strided_ps, l2_bytes, no_pdl_us);
double any_rows_us(const SgemvArgs& p, const DeviceSpec& device, const AnyRowsCost& cost);
// second_wave: what is left of the speed where clusters come to a few blocks more than the multiprocessors take at
// once: 2120 x 16324 transposed took 44 us instead of 33.
FL_COEFFICIENTS(ClusterColumnsCost, start_us, barriers_us, slice_us, unaligned_bytes_per_us, many_bytes_per_us,
                short_bytes_per_us, bytes_per_us, aligned_block_bytes_per_us, unaligned_block_bytes_per_us,
                second_wave);
double cluster_columns_us(const SgemvArgs& p, const DeviceSpec& device, const ClusterColumnsCost& cost);
// block_ns for each block of a multiprocessor, column_ns for each column of a thread, whose loads wait for one another.
// Blocks of 1024 threads read large_block_bytes_per_us at most. each_block_bytes_per_us is of long rows.
FL_COEFFICIENTS(SplitColumnsCost, start_us, sums_us, range_ns, large_blocks_us, large_block_bytes_per_us, block_ns,
                column_ns, memory_bytes_per_us, l2_bytes_per_us, unaligned_memory_bytes_per_us,
                unaligned_l2_bytes_per_us, each_block_bytes_per_us, l2_bytes, no_pdl_us);
double split_columns_us(const SgemvArgs& p, const DeviceSpec& device, const SplitColumnsCost& cost);
// Eight columns at a time, or sixteen. What the threads have in flight bounds the speed, more so beyond L2: 722 x 30480
// transposed takes 34 us.
FL_COEFFICIENTS(ShortColumnsCost, start_us, eight_us, sixteen_us, beyond_l2, memory_bytes_per_us, l2_bytes_per_us,
                unaligned_memory_bytes_per_us, unaligned_l2_bytes_per_us, l2_bytes, no_pdl_us);
double short_columns_us(const SgemvArgs& p, const DeviceSpec& device, const ShortColumnsCost& cost);

}  // namespace fl
