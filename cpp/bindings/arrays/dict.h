// Dictionaries of names and values.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>

namespace fl::py {

struct DictItem {
  const char* name;
  nanobind::object value;
  template <class T>
  DictItem(const char* name, const T& value) : name(name), value(nanobind::cast(value)) {}
};

inline nanobind::dict dict_of(std::initializer_list<DictItem> items) {
  nanobind::dict dict;
  for (const DictItem& item : items) dict[item.name] = item.value;
  return dict;
}

}  // namespace fl::py
