// Copies between arrays of any strides where NumPy's copyto cannot help: a copy is the transpose of a transposed view.
#pragma once

#include "bindings/arrays/array.h"
#include "run/run.h"

namespace fl::py {

// `to` and `from` have the same shape and do not overlap. `options` as for a call on them, without a kernel.
void copy_elements(const Array& to, const Array& from, CallOptions options);

// Of an array in device memory, there and in its order.
Array float32_copy(const Array& x, CallLocation& location);

}  // namespace fl::py
