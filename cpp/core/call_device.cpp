#include "core/call_device.h"

#include <bit>
#include <charconv>
#include <string>

#include "core/errors.h"
#include "core/text.h"

namespace fl {
namespace {

constexpr int most_ordinals = 64;  // in Device::set

[[noreturn]] void refuse(std::string_view text, const std::string& why = "") {
  throw InvalidValue(std::string(device_values) + ", got '" + quoted(text) + "'" + why);
}

// The N of "cuda:N", or -1.
int parse_ordinal(std::string_view text) {
  if (text.substr(0, 5) != "cuda:") return -1;
  int ordinal = -1;
  const auto end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 5, end, ordinal);
  return error == std::errc() && rest == end ? ordinal : -1;
}

std::string name(int ordinal) { return "cuda:" + std::to_string(ordinal); }

Device parse_list(std::string_view text) {
  Device result{Device::cuda};
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const int ordinal = item == "cuda" ? 0 : parse_ordinal(item);
    if (ordinal < 0) refuse(text, ": a list is of CUDA devices, and has '" + quoted(item) + "'");
    if (ordinal >= most_ordinals) refuse(text, ": a list goes to " + name(most_ordinals - 1));
    const uint64_t bit = uint64_t{1} << ordinal;
    if (result.set & bit) refuse(text, ": " + name(ordinal) + " is there twice");
    result.set |= bit;
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  result.ordinal = std::countr_zero(result.set);
  return result;
}

}  // namespace

Device parse_device(std::string_view text) {
  if (text == "auto") return {};
  if (text == "cpu") return {Device::cpu};
  if (text == "cuda") return {Device::cuda};
  if (text == "cuda:all") return {Device::cuda, 0, Device::all};
  if (text.find(',') != text.npos) return parse_list(text);
  if (const int ordinal = parse_ordinal(text); ordinal >= 0) return {Device::cuda, ordinal};
  refuse(text);
}

std::string device_text(Device device) {
  if (device.kind != Device::cuda) return device.kind == Device::cpu ? "cpu" : "auto";
  if (device.set == Device::all) return "cuda:all";
  return joined(ordinals(device), ",", name);
}

std::vector<int> ordinals(Device device) {
  if (!device.set) return {device.ordinal};
  std::vector<int> result;
  for (uint64_t left = device.set; left; left &= left - 1) result.push_back(std::countr_zero(left));
  return result;
}

}  // namespace fl
