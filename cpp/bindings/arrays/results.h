// New arrays for results: the result of a call is of the library of its first operand, and lies where the operands lie.
#pragma once

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"

namespace fl::py {

// For libraries whose arrays cannot be made from here this is a NumPy array or a DeviceArray: see as_callers_own.
nb::object new_result(const Shape& shape, const CallLocation& location);

// The finished result as an array of the first operand's library, where that is not what new_result made.
nb::object as_callers_own(nb::object result, const CallLocation& location);

}  // namespace fl::py
