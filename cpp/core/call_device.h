// Where a call runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/export.h"

namespace fl {

// `automatic`: the estimated costs decide, transfers included.
struct Device {
  enum Kind { automatic, cpu, cuda } kind = automatic;
  int ordinal = 0;
  uint64_t set = 0;  // of a call on several CUDA devices: a bit for each; `ordinal` is then the lowest of them

  bool or_one = false;                           // of "cuda:all": the first alone where it is expected to be as fast
  static constexpr uint64_t all = ~uint64_t{0};  // that the machine has
  bool operator==(const Device&) const = default;
};
inline constexpr const char* device_values =
    "device must be 'auto', 'cpu', 'cuda', 'cuda:N', 'cuda:all' or a list as ['cuda:0', 'cuda:2']";

// "auto", "cpu", "cuda", "cuda:1", "cuda:all", "cuda:0,cuda:2"; throws InvalidValue.
FL_EXPORT Device parse_device(std::string_view text);
FL_EXPORT std::string device_text(Device device);  // which that function understands

FL_EXPORT std::vector<int> ordinals(Device device);  // of a CUDA device, in ascending order; not of `all`

}  // namespace fl
