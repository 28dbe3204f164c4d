// Where a call runs.
#pragma once

#include <string_view>

#include "core/export.h"

namespace fl {

// `automatic` lets run.cpp decide by the estimated cost, transfers included.
struct Device {
  enum Kind { automatic, cpu, cuda } kind = automatic;
  int ordinal = 0;
  bool operator==(const Device&) const = default;
};
inline constexpr const char* device_values = "device must be 'auto', 'cpu', 'cuda' or 'cuda:N'";
FL_EXPORT Device parse_device(std::string_view text);  // "auto", "cpu", "cuda", "cuda:1"; throws InvalidValue

}  // namespace fl
