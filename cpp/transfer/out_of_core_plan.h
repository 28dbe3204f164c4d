// How a call on operands in host memory that do not fit on the device is cut up: tiles of the result that stay on the
// device while panels of the operands pass by. A function of the call and of the memory alone, so that results can be
// repeated. cuda/pipeline/out_of_core.cpp carries a plan out; docs/notes/host_pipeline.md tells what it costs.
#pragma once

#include <cstddef>
#include <vector>

#include "transfer/out_of_core_shape.h"

namespace fl {

template <class Args>
struct OutOfCorePlan {
  OutOfCoreShape shape;
  std::vector<OutOfCoreTile> tiles;  // in the order of execution
};

// The plan that is expected to end first of those that take at most `memory` bytes on the device, or none: a plan
// without tiles. `layout` has the strides that the operands would get there.
template <class Args>
FL_EXPORT OutOfCorePlan<Args> plan_out_of_core(const Args& layout, std::size_t memory,
                                               const KernelFor<Args>& kernel_for);

// The same tiles for several devices with as much memory each: an equal part of them for each, in the same order, with
// the slots of that device. At most one device for each tile of the result.
template <class Args>
FL_EXPORT std::vector<OutOfCorePlan<Args>> share_out(const OutOfCorePlan<Args>& plan, const Args& layout, int devices);

}  // namespace fl
