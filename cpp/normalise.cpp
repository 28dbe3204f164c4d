#include "normalise.h"

#include <algorithm>
#include <utility>

namespace fl {
namespace {

template <class T>
void tidy_strides(MatrixView<T>& x, int64_t rows, int64_t cols, int64_t batch) {
  if (batch == 1) x.bs = 0;
  if (cols == 1) x.cs = 1;
  if (rows == 1) {
    // A single row of unit stride is row-major with any ld: one that no alignment rule objects to. A strided row is a
    // column of a transposed matrix.
    if (x.cs == 1) x.rs = ceil_div(std::max<int64_t>(cols, 1), 4) * 4;
    else x.rs = 1;
  }
}
template <class T>
void tidy_strides(VectorView<T>& x, int64_t size, int64_t batch) {
  if (batch == 1) x.bs = 0;
  if (size == 1) x.inc = 1;
}

}  // namespace

bool normalise(SgemmArgs& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return false;
  if (p.alpha == 0.0f) p.k = 0;
  if (p.k == 0) {
    if (p.beta == 1.0f) return false;
    p.alpha = 0.0f;  // an infinite or NaN alpha times an empty sum is nothing, not NaN
  }
  tidy_strides(p.a, p.m, p.k, p.batch);
  tidy_strides(p.b, p.k, p.n, p.batch);
  tidy_strides(p.c, p.m, p.n, p.batch);
  if (p.c.cs != 1 && p.c.rs == 1) {
    std::swap(p.a, p.b);
    std::swap(p.m, p.n);
    std::swap(p.a.rs, p.a.cs);
    std::swap(p.b.rs, p.b.cs);
    std::swap(p.c.rs, p.c.cs);
  }
  return true;
}

bool normalise(SgemvArgs& p) {
  if (p.m == 0 || p.batch == 0) return false;
  if (p.alpha == 0.0f) p.n = 0;
  if (p.n == 0) {
    if (p.beta == 1.0f) return false;
    p.alpha = 0.0f;
  }
  tidy_strides(p.a, p.m, p.n, p.batch);
  tidy_strides(p.x, p.n, p.batch);
  tidy_strides(p.y, p.m, p.batch);
  return true;
}

bool normalise(TransposeArgs& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return false;
  tidy_strides(p.a, p.m, p.n, p.batch);
  tidy_strides(p.b, p.n, p.m, p.batch);
  return true;
}

}  // namespace fl
