#include "bindings/calls/options.h"

#include <cmath>
#include <string>

#include "bindings/arrays/array.h"
#include "core/errors.h"
#include "device/device.h"

namespace fl::py {

Precision parse_precision(std::string_view text) {
  if (text == "accurate") return Precision::accurate;
  if (text == "strict") return Precision::strict;
  throw InvalidValue("precision must be 'strict' or 'accurate', got '" + std::string(text) + "'");
}

bool parse_flag(const char* function, const char* name, nb::handle flag) {
  if (flag.ptr() == Py_True) return true;
  if (flag.ptr() == Py_False) return false;
  if (is_numpy_bool(flag)) return PyObject_IsTrue(flag.ptr()) == 1;
  throw InvalidType(std::string(function) + ": " + name + " must be True or False, got " + text(nb::repr(flag)));
}

float to_float32(const char* function, const char* name, double value) {
  const float rounded = float(value);
  if (std::isinf(rounded) && !std::isinf(value))
    throw InvalidValue(std::string(function) + ": " + name + "=" + to_string(value) +
                       " is beyond the range of float32");
  return rounded;
}

void* parse_stream(nb::handle stream) {
  if (stream.is_none()) return nullptr;
  nb::object value = nb::borrow(stream);
  if (nb::hasattr(stream, "__cuda_stream__")) {
    value = stream.attr("__cuda_stream__");
    if (PyCallable_Check(value.ptr())) value = value();
    uintptr_t version = 0, handle = 0;
    if (!PySequence_Check(value.ptr()) || PySequence_Size(value.ptr()) != 2 ||
        !nb::try_cast(nb::object(value[0]), version) || !nb::try_cast(nb::object(value[1]), handle))
      throw InvalidType("stream.__cuda_stream__() must give (version, handle), two ints, got " + text(nb::repr(value)));
    if (version != 0)
      throw InvalidValue("stream.__cuda_stream__() gave version " + std::to_string(version) +
                         " of the protocol; fastlinalg knows version 0");
    return stream_of(handle);
  }
  uintptr_t handle = 0;
  if (PyBool_Check(value.ptr()) || !nb::try_cast(value, handle))
    throw InvalidType("stream must be None, an int or an object with __cuda_stream__, got " + text(nb::repr(stream)));
  return stream_of(handle);
}

Options parse_options(const char* function, nb::handle kernel, std::string_view precision, std::string_view device,
                      nb::handle stream) {
  Options options;
  options.precision = parse_precision(precision);
  options.call.device = parse_device(device);
  options.call.stream = parse_stream(stream);
  if (!kernel.is_none()) {
    if (!nb::isinstance<nb::str>(kernel))
      throw InvalidType(std::string(function) + ": kernel must be a name or None, got " + text(nb::repr(kernel)));
    Py_ssize_t size = 0;
    const char* const name = PyUnicode_AsUTF8AndSize(kernel.ptr(), &size);  // alive as long as the argument
    if (!name) throw nb::python_error();
    options.call.kernel = {name, size_t(size)};
    if (options.call.kernel.empty())
      throw InvalidValue(std::string(function) + ": kernel must be a name or None, got ''");
  }
  return options;
}

}  // namespace fl::py
