// How long a tall-skinny product takes on the GPU.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"

namespace fl {

// Blocks in turn on a multiprocessor, of which one takes element_ps for each element of the left operand, or what
// memory allows; wave_us between waves of them. The end, where sums of many columns meet, is what remains of a short k,
// and split_us and split_ns for each range of k are the kernel that adds them up. The others make the read longer: wide
// products, and more where the shared memory of a block has room for half of the warps alone (wide_halved), those with
// 9 to 16 columns that are not wide, operands that are not aligned, and more than one panel of columns.
FL_COEFFICIENTS(TallSkinnyCost, start_us, column_us, split_us, split_ns, wave_us, element_ps, memory_bytes_per_us,
                near_bytes_per_us, near_l2_bytes, wide_aligned, wide, wide_halved, sixteen_near, sixteen_columns,
                sixteen_fewer, sixteen_aligned, sixteen_transposed, unaligned, panels, right_unaligned,
                right_unaligned_panels, no_pdl_us);
double tall_skinny_us(const SgemmArgs& p, const DeviceSpec& device, const TallSkinnyCost& cost);

}  // namespace fl
