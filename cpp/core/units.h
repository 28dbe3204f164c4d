// Times and sizes in messages.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace fl {

inline std::string number_text(const char* format, double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text + std::string(" ") + unit;
}

inline std::string time_text(double us) {
  if (us < 1) return number_text("%.0f", us * 1e3, "ns");
  if (us < 1e3) return number_text("%.3g", us, "µs");
  return us < 1e6 ? number_text("%.3g", us / 1e3, "ms") : number_text("%.3g", us / 1e6, "s");
}

inline std::string size_text(std::size_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return number_text(unit ? "%.1f" : "%.0f", value, units[unit]);
}

inline std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + " bytes (" + size_text(bytes) + ")"; }

}  // namespace fl
