// Python objects that calls look up and make: names, classes, attributes, dictionaries.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>

#include "core/lazy.h"

namespace fl::py {

namespace nb = nanobind;

// Interned once: a look-up then compares pointers.
struct Names {
  nb::object dlpack = intern("__dlpack__"), requires_grad = intern("requires_grad"), is_neg = intern("is_neg"),
             forward_ad = intern("torch.autograd.forward_ad"), current_level = intern("_current_level"),
             ptr = intern("ptr"), cuda_stream = intern("cuda_stream"), data = intern("data"), device = intern("device"),
             device_id = intern("device_id"), shape = intern("shape"), strides = intern("strides"),
             dtype = intern("dtype");
  nb::object float32 = nb::module_::import_("numpy").attr("dtype")("float32");  // the one object that CuPy has too
  // keyword names of calls
  nb::object stream_and_version = nb::make_tuple(intern("stream"), intern("max_version"));
  nb::object version = nb::make_tuple(intern("max_version"));
  nb::object newest = nb::make_tuple(1, 3);
  nb::object no_sync = nb::int_(-1);

 private:
  static nb::object intern(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }
};
inline const Names& names() {
  static constinit Lazy<Names> instance;
  return instance.get([] { return Names(); });
}

// A process has each class once, also if the module is taken out of sys.modules and imported again: then the new module
// gets the class that there is.
template <class T>
bool take_registered(nb::module_& m, const char* name) {
  const nb::handle there = nb::type<T>();
  if (there.is_valid()) m.attr(name) = there;
  return there.is_valid();
}

inline nb::object attribute(nb::handle object, nb::handle name) {
  PyObject* const value = PyObject_GetAttr(object.ptr(), name.ptr());
  if (!value) throw nb::python_error();
  return nb::steal(value);
}

struct DictItem {
  const char* name;
  nb::object value;
  template <class T>
  DictItem(const char* name, const T& value) : name(name), value(nb::cast(value)) {}
};

inline nb::dict dict_of(std::initializer_list<DictItem> items) {
  nb::dict dict;
  for (const DictItem& item : items) dict[item.name] = item.value;
  return dict;
}

}  // namespace fl::py
