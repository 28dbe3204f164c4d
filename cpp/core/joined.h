// A list in a message.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fl {

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

}  // namespace fl
