// Numbers of other types in the caller's memory, which become float32 on their way into the library's own (`dtype=`),
// or while a kernel reads them.
#pragma once

#include <array>
#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "core/export.h"

namespace fl {

enum class Element : unsigned char {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64
};

// What the memory of an operand holds. Views count in floats whatever it is: element i from `origin` on is seen at
// origin + i, and lies i elements of its own size behind `origin`.
struct Stored {
  Element element = Element::float32;
  const float* origin = nullptr;
  bool* overflowed = nullptr;  // set where a finite number becomes infinite, if anybody asks
  bool converted() const { return element != Element::float32; }
  bool in_16_bits() const { return element == Element::float16 || element == Element::bfloat16; }
  bool operator==(const Stored&) const = default;
};

using StoredInputs = std::array<Stored, 2>;  // of A and of what it is multiplied by

FL_EXPORT std::size_t size_of(Element element);

// `lines` lines of `length` elements, `line` and `step` elements apart from the one seen at `from`, as float32 in lines
// `to_line` apart. Rounds to nearest, as NumPy does; what is beyond float32 is infinite.
void convert(const Stored& stored, const float* from, int64_t line, int64_t step, float* to, int64_t to_line,
             int64_t lines, int64_t length);

// Around calls of convert(): notes whether a number overflowed, which the processor says of this thread at no cost. Its
// flag is afterwards as it was before.
class FL_EXPORT OverflowWatch {
 public:
  explicit OverflowWatch(const Stored& stored);
  ~OverflowWatch();
  OverflowWatch(const OverflowWatch&) = delete;
  OverflowWatch& operator=(const OverflowWatch&) = delete;

 private:
  bool* const overflowed_;  // null: nothing can overflow, or nobody asks
  std::fexcept_t before_;
};

}  // namespace fl
