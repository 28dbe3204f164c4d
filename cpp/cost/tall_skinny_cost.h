// How long a tall-skinny product takes on the GPU.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"

namespace fl {

// Waves of blocks, of which one takes block_ps for each element of the left operand, or what memory allows. The end,
// where sums of many columns meet, is what remains of a short k. The others make the read longer: wide products, those
// with 9 to 16 columns that are not wide, operands that are not aligned, and more than one panel of columns.
FL_COEFFICIENTS(TallSkinnyCost, start_us, column_us, split_us, wave_us, block_element_ps, memory_bytes_per_us,
                near_bytes_per_us, near_l2_bytes, wide_aligned, wide, sixteen_near, sixteen_unaligned, sixteen_columns,
                sixteen_fewer, sixteen_aligned, sixteen_transposed, unaligned, panels, right_unaligned,
                right_unaligned_panels, too_many_us);
double tall_skinny_us(const SgemmArgs& p, const DeviceSpec& device, const TallSkinnyCost& cost);

}  // namespace fl
