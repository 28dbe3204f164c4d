// As much of JSON as the library's own files need: read whole, numbers as doubles, no \u escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fl {

struct Json {
  struct Field;
  enum Type { null, boolean, number, string, array, object } type = null;
  double value = 0;  // of a number, or 1 for true
  std::string text;
  std::vector<Json> items;
  std::vector<Field> fields;

  const Json* field(std::string_view name) const;  // null if there is none
};
// No pair, which Clang refuses in a vector until Json is complete.
struct Json::Field {
  std::string name;
  Json value;
};

// Throws InvalidValue for anything else than one JSON value.
Json parse_json(std::string_view text);

}  // namespace fl
