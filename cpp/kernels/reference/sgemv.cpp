// The specification of SGEMV. The transposed product arrives with its strides swapped (problem.h).
#include "core/context.h"
#include "core/problem.h"

namespace fl {

void sgemv_reference(const SgemvArgs& p, const Context&) {
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    const float* a = p.a.data + batch * p.a.bs;
    const float* x = p.x.data + batch * p.x.bs;
    float* y = p.y.data + batch * p.y.bs;
    for (int64_t i = 0; i < p.m; ++i) {
      float sum = 0.0f;
      for (int64_t j = 0; j < p.n; ++j) sum += a[i * p.a.rs + j * p.a.cs] * x[j * p.x.inc];
      float& out = y[i * p.y.inc];
      out = p.beta == 0.0f ? p.alpha * sum : p.alpha * sum + p.beta * out;
    }
  }
}

}  // namespace fl
