// The library's errors as Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

namespace fl::py {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
void set_python_error(const std::exception_ptr& error);

// For functions that Python calls without nanobind: what call() returns, or null and the error.
template <class Call>
PyObject* or_error(Call&& call) {
  try {
    return call();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (...) {
    set_python_error(std::current_exception());
  }
  return nullptr;
}

}  // namespace fl::py
