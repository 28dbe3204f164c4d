// Operands as what their memory holds: kernels read numbers of 16 bits by loads that make float32 of them.
#pragma once

#include "core/stored.h"

namespace fl {
namespace {

// f(the address of the element that is seen at `seen`).
template <class F>
inline __attribute__((always_inline)) void with_elements(const Stored& stored, const float* seen, F f) {
  switch (stored.element) {
    case Element::float16: return f(place_of<Half>(stored, seen));
    case Element::bfloat16: return f(place_of<Bfloat>(stored, seen));
    default: return f(seen);
  }
}

// Where with_elements() was told that the element at `a` is seen.
template <class T>
const float* seen(const Stored& stored, const T* a) {
  return stored.origin + (a - reinterpret_cast<const T*>(stored.origin));
}

inline float to_float(float value) { return value; }

}  // namespace
}  // namespace fl
