// Dictionaries of names and values.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

inline void set(nanobind::dict&) {}
template <class T, class... Rest>
void set(nanobind::dict& dict, const char* name, const T& value, const Rest&... rest) {
  dict[name] = value;
  set(dict, rest...);
}

// dict_of("a", 1, "b", 2.0)
template <class... Items>
nanobind::dict dict_of(const Items&... items) {
  nanobind::dict dict;
  set(dict, items...);
  return dict;
}

}  // namespace fl::py
