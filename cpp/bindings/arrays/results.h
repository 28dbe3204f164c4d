// New arrays for results: the result of a call is of the library of its first operand, and lies where the operands lie.
#pragma once

#include <cstddef>
#include <memory>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"

namespace fl::py {

// For libraries whose arrays cannot be made from here this is a NumPy array or a DeviceArray: see as_callers_own.
Array new_result(const Shape& shape, CallLocation& location);

// The same for results of a list. Small tensors share allocations of torch's, which take as long as the rest of a small
// product on the host; each has storage of its own otherwise.
class ListResults {
 public:
  void expect(const Shape& shape, const CallLocation& location);  // each before the first is made
  Array make(const Shape& shape, CallLocation& location);

 private:
  using SharedTensor = std::shared_ptr<dl::ManagedTensorVersioned>;
  struct Part;
  SharedTensor shared_;
  std::size_t used_ = 0, room_ = 0, expected_ = 0;  // elements
};

// The finished result as an array of the first operand's library, where that is not what new_result made.
nb::object as_callers_own(nb::object result, const CallLocation& location);

}  // namespace fl::py
