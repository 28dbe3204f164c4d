// The tile registers of AMX: eight matrices of up to 16 rows of 64 bytes, and the one product that the kernels take.
// Instructions as text: the numbers of registers are a part of them, and no compiler has to know them.
#pragma once

#include <stdint.h>

#include "tile_shapes.h"

namespace fl {
namespace {

class AmxTiles {
 public:
  void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
  // Without it a switch to another thread saves 8 KiB more.
  void release() { asm volatile("tilerelease"); }
  template <int tile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  // Rows `stride` bytes apart.
  template <int tile>
  void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
  }
  // c += a * b, of pairs of bf16 numbers.
  template <int c, int a, int b>
  void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(c), "i"(a), "i"(b));
  }
};

}  // namespace
}  // namespace fl
