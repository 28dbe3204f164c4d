// A call on operands in host memory, carried out panel by panel: copies in, products and copies out at the same time.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "transfer/device_shares.h"
#include "transfer/out_of_core_plan.h"
#include "transfer/panel_plan.h"

namespace fl::cuda {

// Each device carries out its share of the plan, and runs its products on the stream in the same place. Returns when
// the result is in place. After an exception nothing touches the caller's memory any more. One of the devices is
// current.
template <class Args>
void run_pipelines(const std::vector<DeviceShare<Args>>& shares, const Args& host, const Args& layout,
                   std::span<const int> devices, std::span<const cudaStream_t> streams);

// The same of operands that do not fit there, tile by tile: for a plan that has tiles, or for one on each of several
// devices. `kernel_for` chooses the kernels of their steps.
template <class Args>
void run_out_of_core(std::span<const OutOfCorePlan<Args>> plans, const KernelFor<Args>& kernel_for, const Args& host,
                     std::span<const int> devices, std::span<const cudaStream_t> streams);

// What its steps need besides the operands.
template <class Args>
std::size_t workspace_bytes(const PanelPlan<Args>& plan, const Args& layout);

}  // namespace fl::cuda
