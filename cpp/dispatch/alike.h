// Whether every rule of the kernel table answers the same for two calls: rules see addresses modulo 128 only (rules.h).
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace fl {

inline bool alike(const float* a, const float* b) { return ((uintptr_t(a) ^ uintptr_t(b)) & 127) == 0; }
template <class T>
bool alike(const MatrixView<T>& x, const MatrixView<T>& y) {
  return x.rs == y.rs && x.cs == y.cs && x.bs == y.bs && alike(x.data, y.data);
}
template <class T>
bool alike(const VectorView<T>& x, const VectorView<T>& y) {
  return x.inc == y.inc && x.bs == y.bs && alike(x.data, y.data);
}
inline bool alike(const SgemmArgs& p, const SgemmArgs& q) {
  return p.m == q.m && p.n == q.n && p.k == q.k && p.batch == q.batch && p.precision == q.precision &&
         p.alpha == q.alpha && p.beta == q.beta && alike(p.a, q.a) && alike(p.b, q.b) && alike(p.c, q.c);
}
inline bool alike(const SgemvArgs& p, const SgemvArgs& q) {
  return p.m == q.m && p.n == q.n && p.batch == q.batch && p.alpha == q.alpha && p.beta == q.beta && alike(p.a, q.a) &&
         alike(p.x, q.x) && alike(p.y, q.y);
}
inline bool alike(const TransposeArgs& p, const TransposeArgs& q) {
  return p.m == q.m && p.n == q.n && p.batch == q.batch && p.in_place == q.in_place && alike(p.a, q.a) &&
         alike(p.b, q.b);
}

}  // namespace fl
