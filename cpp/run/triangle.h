// One triangle of a matrix times its own transpose: SSYRK, as a few products like any other.
#pragma once

#include "core/triangle_copy.h"
#include "run/run.h"

namespace fl {

// C = alpha A A^T + beta C, where of C the triangle and the diagonal are read and written; the rest stays as it is, or
// becomes zero. `product` is the whole, B being A transposed; an addend shares no memory with C, and is read in the
// same triangle. On the CPU about half of the whole is computed; a GPU, or a kernel asked for by name, computes the
// whole in memory of its own. With operands in device memory the call returns once that is queued on its stream.
FL_EXPORT void run_triangle(const SgemmArgs& product, Triangle part, OtherTriangle other_triangle,
                            const CallOptions& options);

}  // namespace fl
