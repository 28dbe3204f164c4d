// What a call says beside its problem.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/call_device.h"
#include "plan/prepacked_operand.h"

namespace fl {

class ConstantOperand;  // run/constant_operands.h

struct CallOptions {
  std::string_view kernel = {};  // empty: dispatch chooses
  Device device = {};
  void* stream = nullptr;      // cudaStream_t; null: one of the library's own
  bool device_memory = false;  // the operands are device pointers; the call returns once it is queued on `stream`
  const std::function<void(const std::string&)>* log = nullptr;  // called with one line of text if set
  bool log_choice = true;                                        // false: only what is out of the ordinary
  std::optional<Side> constant = {};            // of a plan: the operand that has the same values in every execution
  ConstantOperand* constant_operand = nullptr;  // of a product: an operand whose split stays from call to call
};

}  // namespace fl
