#include "core/call_device.h"

#include <charconv>
#include <string>

#include "core/errors.h"

namespace fl {

Device parse_device(std::string_view text) {
  if (text == "auto") return {};
  if (text == "cpu") return {Device::cpu, 0};
  if (text == "cuda") return {Device::cuda, 0};
  if (text.substr(0, 5) == "cuda:") {
    int ordinal = -1;
    const auto end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 5, end, ordinal);
    if (error == std::errc() && rest == end && ordinal >= 0) return {Device::cuda, ordinal};
  }
  throw InvalidValue(std::string(device_values) + ", got '" + std::string(text) + "'");
}

}  // namespace fl
