// A whole call on operands in host or device memory. Its way down: bring it to one form (normalise.h), place it on a
// device, choose a kernel, then launch that or carry out a plan of many launches. decide() does the first three,
// execute() the last. What repeats keeps a Decision, or the part of one that it needs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/element.h"
#include "dispatch/dispatch.h"
#include "plan/prepacked_operand.h"
#include "transfer/panel_plan.h"

namespace fl {

class ConstantOperand;  // run/constant_operands.h

struct CallOptions {
  std::string_view kernel = {};  // empty: dispatch chooses
  Device device = {};
  void* stream = nullptr;      // cudaStream_t; null: one of the library's own
  bool device_memory = false;  // the operands are device pointers; the call returns once it is queued on `stream`
  const std::function<void(const std::string&)>* log = nullptr;  // called with one line of text if set
  bool log_choice = true;                                        // false: only what is out of the ordinary
  // Operands in host memory that become float32 on their way to a GPU. A call that stays on the CPU takes none.
  StoredInputs stored = {};
  std::optional<Side> constant = {};            // of a plan: the operand that has the same values in every execution
  ConstantOperand* constant_operand = nullptr;  // of a product: an operand whose split stays from call to call
};

// What is settled before anything is computed.
template <class Args>
struct Decision {
  Args args;                 // in the one form of normalise.h
  Args layout;               // the strides on the device of operands that move: from host memory, or into packed copies
  bool packed = false;       // operands in device memory move
  StoredInputs stored = {};  // CallOptions::stored, in the order of `args`
  Device device = {};
  const Kernel<Args>* kernel = nullptr;  // null: nothing is left to compute
  // Of operands in host memory that go to a GPU; `kernel` is that of its largest step.
  std::shared_ptr<const PanelPlan<Args>> panels = nullptr;
};
template <class Args>
Decision<Args> decide(const Args& args, const CallOptions& options);

// What the kernel gets to see.
template <class Args>
const Args& seen_by_kernel(const Decision<Args>& decision, const CallOptions& options) {
  const bool moves = decision.packed || !options.device_memory;
  return decision.device.kind == Device::cuda && moves ? decision.layout : decision.args;
}

// Computes it, with a workspace of the call's own; `options` are those of decide() but for the stream.
template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options);

// For a call whose kernel could not get its workspace: another kernel that needs none. False if there is none, or the
// kernel was asked for by name.
template <class Args>
bool do_without_workspace(Decision<Args>& decision, const CallOptions& options);

// Where such a call runs; CallOptions::device as it is if nothing is computed.
template <class Args>
FL_EXPORT Device device_of(const Args& args, const CallOptions& options);

// What decides a call, in words and figures, with nothing computed.
struct Forecast {
  Device device = {};            // meaningless without a kernel
  const char* kernel = nullptr;  // null: nothing would be computed
  double us = 0;                 // that it is expected to take, copies of operands in host memory included
  bool triangle = false;         // the product is symmetric, and the kernel computes one triangle of it
  int64_t steps = 0;  // of operands in host memory that go to a GPU: in so many parts; `kernel` is of the largest
  std::vector<NotTaken> others;
};
template <class Args>
FL_EXPORT Forecast forecast(const Args& args, const CallOptions& options);

// What the kernel of such a call is expected to take, without what copies operands.
template <class Args>
FL_EXPORT double expected_us(const Args& args, const CallOptions& options);

// If this thread has just decided a call like this one, which takes less than alone_us on the CPU: computes it and
// returns true.
template <class Args>
FL_EXPORT bool run_short(const Args& args, const CallOptions& options);
// decide() and execute(). What it decides run_short() may find again.
template <class Args>
FL_EXPORT void decide_and_run(const Args& args, const CallOptions& options);
template <class Args>
void run(const Args& args, const CallOptions& options) {
  if (!run_short(args, options)) decide_and_run(args, options);
}

// Whether a transpose may have its operand as its result (args.in_place). Not in host memory on the way to a GPU, and
// only if some kernel, or the one asked for, exchanges views like these.
FL_EXPORT bool transposes_in_place(const TransposeArgs& args, const CallOptions& options);

}  // namespace fl
