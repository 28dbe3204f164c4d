// The memory operand of LDTILECFG: rows and bytes a row of each tile register.
#pragma once

#include <stdint.h>

namespace fl {
namespace {

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

}  // namespace
}  // namespace fl
