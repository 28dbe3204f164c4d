#include "device/pretended.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/text.h"

namespace fl {
namespace {

constexpr const char* variable = "FASTLINALG_COMPUTE_CAPABILITY";
constexpr int oldest = capabilities[0].number, newest = 999;  // 10 * major + minor

bool read(std::string_view text, int& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && text.front() != '-';
}

// "8.0" and "80" are 80; 0 for what is neither, or is older than any device that the kernels are for.
int capability_of(std::string_view text) {
  const std::size_t dot = text.find('.');
  int major = 0, minor = 0, number = 0;
  if (dot == std::string_view::npos) {
    if (!read(text, number)) return 0;
  } else {
    const std::string_view digit = text.substr(dot + 1);
    if (dot == 0 || digit.size() != 1 || !read(text.substr(0, dot), major) || !read(digit, minor) || major > 99)
      return 0;
    number = 10 * major + minor;
  }
  return number >= oldest && number <= newest ? number : 0;
}

DeviceSpec answering_as(DeviceSpec spec, int number) {
  const Capability& known = capability(number);
  spec.compute_capability = number;
  spec.features &= features_of(number);
  spec.threads_per_sm = std::min(spec.threads_per_sm, known.threads_per_sm);
  spec.registers_per_sm = std::min(spec.registers_per_sm, known.registers_per_sm);
  spec.shared_per_sm = std::min(spec.shared_per_sm, std::size_t(known.shared_per_sm));
  spec.shared_per_block = std::min(spec.shared_per_block, std::size_t(known.shared_per_block));
  return spec;
}

}  // namespace

std::string capability_text(int compute_capability) {
  return std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
}

Pretended pretended(const DeviceSpec& real, std::string_view text) {
  const int wanted = text.empty() ? real.compute_capability : capability_of(text);
  if (wanted == real.compute_capability) return {real, "", ""};
  const std::string ignored = std::string(variable) + "=" + quoted(text) + " is ignored: ";
  if (wanted == 0) {
    return {real, "",
            ignored + "it must be a compute capability from " + capability_text(oldest) + " on, as 8.0 or 80"};
  }
  if (wanted > real.compute_capability) {
    return {real, "",
            ignored + real.name + " has compute capability " + capability_text(real.compute_capability) +
                " and can pretend to be an older one only"};
  }
  return {answering_as(real, wanted), std::string(variable) + "=" + capability_text(wanted) + " is set", ""};
}

Pretended pretended(const DeviceSpec& real) {
  const char* const text = std::getenv(variable);
  return pretended(real, text ? text : "");
}

std::string unreadable_capability() {
  DeviceSpec any{};
  any.compute_capability = newest;
  return pretended(any).ignored;
}

}  // namespace fl
