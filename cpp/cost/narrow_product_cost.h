// How long a narrow product takes on the GPU.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"

namespace fl {

// A warp waits columns_k_ns or rows_k_ns for each k, or 32, of its own. A multiprocessor takes element_ps for each
// element of the left operand and fma_ps more for four columns, four_ps for each k of four columns that a block brings,
// and block_ns for each four columns of a block, whose sums are added up and stored. split_us, and split_ns for each
// range of k, are the kernel that adds those.
FL_COEFFICIENTS(NarrowProductCost, start_us, block_ns, four_ps, split_us, split_ns, columns_k_ns, rows_k_ns,
                columns_element_ps, rows_element_ps, columns_fma_ps, rows_fma_ps, memory_bytes_per_us,
                near_bytes_per_us, near_l2_bytes, no_pdl_us);
double narrow_product_us(const SgemmArgs& p, const DeviceSpec& device, const NarrowProductCost& cost);

}  // namespace fl
