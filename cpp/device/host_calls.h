// Calls on operands in host memory.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "transfer/panel_plan.h"

namespace fl::cuda {

// Carries out a plan on operands in host memory: copies in, launches, copies out, and returns when the result is there.
// `layout` is what device_layout() returned for `host`, and the plan one for it.
// On several devices of one kind, in the order of their numbers, each carries out a part of it
// (transfer/device_shares.h). `stream`, of a call on one device, may be null: the library then uses one of its own.
// OutOfMemory comes before anything is written. `log`, if set, is told of a call that does not fit on the device and
// goes there in parts.
using Log = std::function<void(const std::string&)>;
template <class Args>
void run_on_host_operands(const PanelPlan<Args>& plan, const Args& host, const Args& layout,
                          std::span<const int> devices, void* stream, const Log* log);

// What a call on host operands can expect of the link to a device and of so many threads that copy. Measured at the
// first such call; a usual speed before.
HostLink host_link(int device, int threads);

// The strides that a call's operands get on the device, with null pointers: contiguous rows padded to 16 bytes, in the
// operand's own order (C or F) where the kernels take it. Dispatch chooses a kernel for this, not for the host strides.
template <class Args>
Args device_layout(const Args& host);

}  // namespace fl::cuda
