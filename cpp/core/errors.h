// The library's exceptions. Each maps to one Python type and one C status code (capi/errors.cpp, bindings/module.cpp).
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "core/export.h"

namespace fl {

struct FL_EXPORT InvalidValue : std::invalid_argument {  // ValueError: shapes, overlap, unknown names
  using std::invalid_argument::invalid_argument;
};
// A kernel that the table does not have. The interfaces add where their callers find the list.
struct FL_EXPORT UnknownKernel : InvalidValue {
  UnknownKernel(std::string op, const std::string& message) : InvalidValue(message), op(std::move(op)) {}
  std::string op;
};
struct FL_EXPORT InvalidType : std::invalid_argument {  // TypeError: dtype, array kind
  using std::invalid_argument::invalid_argument;
};
struct FL_EXPORT OutOfMemory : std::runtime_error {  // MemoryError: host or device
  using std::runtime_error::runtime_error;
};
struct FL_EXPORT CudaError : std::runtime_error {  // fastlinalg.CudaError
  CudaError(int code, std::string name, const std::string& message)
      : std::runtime_error(message), code(code), name(std::move(name)) {}
  int code;
  std::string name;
};
struct FL_EXPORT CallEnded : std::runtime_error {  // whoever asked for that has an exception of its own
  using std::runtime_error::runtime_error;
};

}  // namespace fl
