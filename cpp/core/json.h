// As much of JSON as the library's own files need: read whole, numbers as doubles, no \u escapes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fl {

struct Json {
  enum Type { null, boolean, number, string, array, object } type = null;
  double value = 0;  // of a number, or 1 for true
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> fields;

  const Json* field(std::string_view name) const;  // null if there is none
};

// Throws InvalidValue for anything else than one JSON value.
Json parse_json(std::string_view text);

}  // namespace fl
