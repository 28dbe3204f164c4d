// A call on operands in host memory that do not fit on the device: tile by tile, through the pipeline.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "transfer/out_of_core_plan.h"

namespace fl::cuda {

// As run_pipeline(), for a plan that has tiles, or for one on each of several devices. Device i runs its products on
// stream i. `kernel_for` chooses the kernels of their steps.
template <class Args>
void run_out_of_core(std::span<const OutOfCorePlan<Args>> plans, const KernelFor<Args>& kernel_for, const Args& host,
                     std::span<const int> devices, std::span<const cudaStream_t> streams);

}  // namespace fl::cuda
