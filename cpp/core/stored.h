// Operands as what their memory holds: float32 or numbers of 16 bits.
#pragma once

#include <type_traits>

#include "core/element.h"
#include "core/halves.h"

namespace fl {

inline bool any_in_16_bits(const StoredInputs& inputs) { return inputs[0].in_16_bits() || inputs[1].in_16_bits(); }

// Where the number lies that is seen at `seen`, in an operand of T.
template <class T>
constexpr const T* place_of(const Stored& stored, const float* seen) {
  if constexpr (std::is_same_v<T, float>) return seen;
  else return reinterpret_cast<const T*>(stored.origin) + (seen - stored.origin);
}

// Returns visit(T()) for the type T of an operand that is not stored in wider numbers.
template <class Visit>
auto with_type(const Stored& stored, Visit&& visit) {
  if (stored.element == Element::float16) return visit(Half());
  if (stored.element == Element::bfloat16) return visit(Bfloat());
  return visit(float());
}

}  // namespace fl
