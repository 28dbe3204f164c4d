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

// Every 16-byte access of a kernel is aligned: the base and all strides but the unit one are multiples of four floats.
template <class T>
bool aligned16(const MatrixView<T>& x) {
  return reinterpret_cast<uintptr_t>(x.data) % 16 == 0 && ld(x) % 4 == 0 && x.bs % 4 == 0;
}

}  // namespace fl
