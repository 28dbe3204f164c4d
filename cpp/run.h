// A whole call on operands in host or device memory: normalise, pick a device and a row, run it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "dispatch.h"

namespace fl {

struct CallOptions {
  std::string_view kernel = {};  // empty: dispatch chooses
  Device device = {};
  void* stream = nullptr;      // cudaStream_t; null: one of the library's own
  bool device_memory = false;  // the operands are device pointers; the call returns once it is queued on `stream`
  const std::function<void(const std::string&)>* log = nullptr;  // called with one line of text if set
};

template <class Args>
FL_EXPORT void run(Args args, const CallOptions& options);

}  // namespace fl
