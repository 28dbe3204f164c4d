// How a matrix view lies in memory: what legality, costs and kernels ask of operands.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace fl {

template <class T>
constexpr bool row_major(const MatrixView<T>& x) {
  return x.cs == 1;
}
template <class T>
constexpr bool unit_stride(const MatrixView<T>& x) {
  return x.cs == 1 || x.rs == 1;
}
template <class T>
constexpr int64_t ld(const MatrixView<T>& x) {
  return x.cs == 1 ? x.rs : x.cs;
}

// Accesses of FLOATS floats at once are aligned wherever these strides lead from `data`.
template <int FLOATS, class T, class... Strides>
constexpr bool aligned(const T* data, Strides... strides) {
  return reinterpret_cast<uintptr_t>(data) % (FLOATS * sizeof(T)) == 0 && ((strides % FLOATS == 0) && ...);
}
// The same along the unit stride of a matrix, in all lines and problems.
template <int FLOATS, class T>
constexpr bool aligned(const MatrixView<T>& x) {
  return aligned<FLOATS>(x.data, ld(x), x.bs);
}
template <class T>
constexpr bool aligned16(const MatrixView<T>& x) {  // 16-byte accesses
  return aligned<4>(x);
}

}  // namespace fl
