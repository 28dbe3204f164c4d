// One triangle of square matrices in device memory, as it is copied.
#pragma once

#include "core/context.h"
#include "core/problem.h"

namespace fl {

enum class Triangle { lower, upper };

// What the target has beside the triangle: stays, or becomes zero.
enum class OtherTriangle { kept, zero };

// The triangle and the diagonal of `batch` matrices with n rows. `from` and `to` share no memory.
struct TriangleCopy {
  int64_t n = 0, batch = 1;
  Triangle part = Triangle::lower;
  OtherTriangle other = OtherTriangle::kept;
  ConstMatrix from;
  Matrix to;
};

// Launches the kernel (cuda/kernels/transpose/copy_triangle.cu).
void copy_triangle(const TriangleCopy& p, const Context& ctx);

}  // namespace fl
