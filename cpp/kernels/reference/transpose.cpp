// The specification of the transpose: b(j, i) = a(i, j).
#include <utility>

#include "core/context.h"
#include "core/problem.h"

namespace fl {

void transpose_reference(const TransposeArgs& p, const Context&) {
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    const float* a = p.a.data + batch * p.a.bs;
    float* b = p.b.data + batch * p.b.bs;
    if (p.in_place) {
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < i; ++j) std::swap(b[i * p.b.rs + j * p.b.cs], b[j * p.b.rs + i * p.b.cs]);
      continue;
    }
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) b[j * p.b.rs + i * p.b.cs] = a[i * p.a.rs + j * p.a.cs];
  }
}

}  // namespace fl
