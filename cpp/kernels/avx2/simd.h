// AVX2 + FMA: vectors of eight floats, 16 registers.
#pragma once

#include "../simd256.h"

namespace fl {
namespace {

using Simd = Simd256;

}  // namespace
}  // namespace fl
