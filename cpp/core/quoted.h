// Text from outside (an environment variable, a file) in a message or a log, which Python has to be able to decode.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fl {

// The first `longest` bytes, with a question mark for each that is no printable ASCII, and "..." for the rest.
inline std::string quoted(std::string_view text, std::size_t longest = 40) {
  std::string shown(text.substr(0, longest));
  for (char& c : shown)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > longest ? shown + "..." : shown;
}

}  // namespace fl
