// Who does what of a call on operands in host memory on several devices of one kind. Each step of the plan that one
// device would carry out is computed by one of them, with the kernel that the plan says and on operands in the same
// layout: so the result has the bits that one device gives. Of each load each device fetches a part and passes it on to
// those that need it: operands cross the host's memory and its links once. A function of the plan and of the number of
// devices alone.
#pragma once

#include <cstddef>
#include <vector>

#include "transfer/panel_plan.h"

namespace fl {

// The share of one device. Devices are numbered in their order in the call.
template <class Args>
struct DeviceShare {
  PanelPlan<Args> plan;                     // what it fetches, and its steps
  std::vector<std::vector<int>> passed_on;  // of each of its loads: to these devices
  // Before each of its steps: by device, how many loads that one has to have fetched and passed on.
  std::vector<std::vector<std::size_t>> received;
};

// For at most `devices` devices, each of which has a step. Without `passes_on` each fetches all that it needs.
template <class Args>
FL_EXPORT std::vector<DeviceShare<Args>> share_out(const PanelPlan<Args>& plan, const Args& layout, int devices,
                                                   bool passes_on);

// Microseconds that a call by this plan is expected to take on several devices: it ends with the last of them.
template <class Args>
double estimate_us(const PanelPlan<Args>& plan, const Args& layout, int devices, const HostLink& link);

}  // namespace fl
