// A call on operands in host memory that do not fit on the device: tile by tile, through the pipeline.
#pragma once

#include <cuda_runtime_api.h>

#include "transfer/out_of_core_plan.h"

namespace fl::cuda {

// As run_pipeline(), for a plan that has tiles. `kernel_for` chooses the kernels of their steps.
template <class Args>
void run_out_of_core(const OutOfCorePlan<Args>& plan, const KernelFor<Args>& kernel_for, const Args& host, int device,
                     cudaStream_t stream);

}  // namespace fl::cuda
