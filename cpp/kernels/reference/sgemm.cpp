// The specification: what every SGEMM kernel has to compute. Kept as plain as it can be and never optimised.
#include "core/context.h"
#include "core/problem.h"

namespace fl {

void sgemm_reference(const SgemmArgs& p, const Context& context) {
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    const float* a = p.a.data + batch * p.a.bs;
    const float* b = p.b.data + batch * p.b.bs;
    float* c = p.c.data + batch * p.c.bs;
    for (int64_t i = 0; i < p.m; ++i) {
      if (context.watch && !context.watch->goes_on(*context.watch, p.n * p.k, 0)) return;
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = 0.0f;
        for (int64_t l = 0; l < p.k; ++l) sum += a[i * p.a.rs + l * p.a.cs] * b[l * p.b.rs + j * p.b.cs];
        float& out = c[i * p.c.rs + j * p.c.cs];
        out = p.beta == 0.0f ? p.alpha * sum : p.alpha * sum + p.beta * out;
      }
    }
  }
}

}  // namespace fl
