// Numbers of 16 bits, and lines of them in device memory that become float32 there.
#pragma once

#include <bit>
#include <cstdint>

#include "core/context.h"

namespace fl {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

constexpr float to_float(Bfloat value) { return std::bit_cast<float>(uint32_t(value.bits) << 16); }
// The bits of its magnitude, read as a float32, are the number divided by 2^112, subnormals too. What is infinite or
// NaN gets the largest exponent. No branch, so that compilers make vectors of it.
constexpr float to_float(Half value) {
  const uint32_t magnitude = (value.bits & 0x7fffu) << 13, sign = (value.bits & 0x8000u) << 16;
  const uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t special = 0u - uint32_t(magnitude >= 0x0f800000u);
  return std::bit_cast<float>(scaled | (special & 0x7f800000u) | sign);
}

// `lines` lines of `width` numbers, one after the other, as float32 in lines `to_line` apart. They share no memory.
struct HalfLines {
  const uint16_t* from = nullptr;
  float* to = nullptr;
  int64_t to_line = 0;
  unsigned lines = 0, width = 0;  // fewer than 2^31 in all
  bool bfloat = false;
};

// Launches the kernel (cuda/kernels/common/widen_halves.cu).
void widen_halves(const HalfLines& p, const Context& ctx);

}  // namespace fl
