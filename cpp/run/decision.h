// What is settled of a call before anything is computed: where it runs and which kernel answers. Each way to run one
// has its own arguments.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "dispatch/dispatch.h"
#include "run/call_options.h"
#include "transfer/panel_plan.h"

namespace fl {

// The kernel, and the call as it gets to see it.
template <class Args>
struct Chosen {
  const Kernel<Args>* kernel = nullptr;
  Args args = {};
};

// On the CPU, on operands where they lie.
template <class Args>
struct CpuRun : Chosen<Args> {
  Args& given() { return this->args; }
  Device device() const { return {Device::cpu, 0}; }
};

// On a device, on operands in its memory.
template <class Args>
struct Launch : Chosen<Args> {
  int ordinal = 0;
  Args& given() { return this->args; }
  Device device() const { return {Device::cuda, ordinal}; }
};

// The same on packed copies of operands that no kernel takes as they lie: null pointers in `args`.
template <class Args>
struct PackedLaunch : Chosen<Args> {
  Args caller;  // the operands as they lie
  int ordinal = 0;
  Args& given() { return caller; }
  Device device() const { return {Device::cuda, ordinal}; }
};

// On operands in host memory, by a plan of many launches. `args` has the strides that they get on the device, `kernel`
// is that of the largest step.
template <class Args>
struct Panels : Chosen<Args> {
  Args host;
  Device devices;  // one or several
  std::shared_ptr<const PanelPlan<Args>> plan = nullptr;
  Args& given() { return host; }
  Device device() const { return devices; }
};

// given() is the call in the one form of normalise.h.
template <class Args>
using Decision = std::variant<CpuRun<Args>, Launch<Args>, PackedLaunch<Args>, Panels<Args>>;

template <class Args>
const Chosen<Args>& chosen(const Decision<Args>& decision) {
  return std::visit([](const Chosen<Args>& kind) -> const Chosen<Args>& { return kind; }, decision);
}
template <class Args>
Device place_of(const Decision<Args>& decision) {
  return std::visit([](const auto& kind) { return kind.device(); }, decision);
}

// Nothing if nothing is left to compute.
template <class Args>
std::optional<Decision<Args>> decide(const Args& args, const CallOptions& options);

// The arguments of a PackedLaunch of the kernel: of cuda::packed_layout(caller), but for what the kernel reads as it
// lies.
template <class Args>
Args packed_for(const Kernel<Args>& kernel, const Args& caller, const Args& packed);

// The kernel for the arguments as they are by now.
template <class Args>
void choose_again(Decision<Args>& decision, const CallOptions& options);

}  // namespace fl
