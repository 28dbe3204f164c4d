// Text in messages: times, sizes, lists, what came from outside, and names like one that nobody knows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

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

// The text of each item, with the separator between them.
template <class Items, class Text = std::identity>
std::string joined(const Items& items, std::string_view separator, const Text& text = {}) {
  std::string all;
  bool first = true;
  for (const auto& item : items) {
    if (!first) all += separator;
    all += text(item);
    first = false;
  }
  return all;
}

// Of text from outside, an environment variable or a file, which Python has to be able to decode: the first `longest`
// bytes, with a question mark for each that is no printable ASCII, and "..." for the rest.
inline std::string quoted(std::string_view text, std::size_t longest = 40) {
  std::string shown(text.substr(0, longest));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > longest ? shown + "..." : shown;
}

// The fewest letters to insert, delete or replace between two names (Levenshtein, Soviet Physics Doklady 10, 1966; the
// algorithm of R. A. Wagner and M. J. Fischer, JACM 21(1), 1974, one row at a time).
inline std::size_t edit_distance(std::string_view x, std::string_view y) {
  std::vector<std::size_t> row(y.size() + 1);
  for (std::size_t j = 0; j <= y.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < y.size(); ++j) {
      const std::size_t replaced = diagonal + (x[i] != y[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[y.size()];
}

}  // namespace fl
