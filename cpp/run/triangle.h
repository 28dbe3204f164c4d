// One triangle of a matrix times its own transpose: SSYRK, as a few products like any other.
#pragma once

#include "core/triangle_copy.h"
#include "run/run.h"

namespace fl {

// C = alpha A A^T + beta C, where of C the triangle and the diagonal are read and written, and nothing else. `product`
// is the whole, B being A transposed, in host memory; an addend shares no memory with C, and is read in the same
// triangle. On the CPU about half of the whole is computed; a GPU, or a kernel asked for by name, computes the whole in
// memory of its own.
FL_EXPORT void run_triangle(const SgemmArgs& product, Triangle part, const CallOptions& options);

// What that leaves alone becomes zero.
FL_EXPORT void clear_beside(const SgemmArgs& product, Triangle part);

}  // namespace fl
