#include "bindings/calls/options.h"

#include <cmath>
#include <string>

#include "bindings/arrays/array.h"
#include "core/errors.h"
#include "core/text.h"

namespace fl::py {

namespace {

constexpr const char* precision_values = "precision must be 'strict', 'accurate' or 'reproducible'";

std::string_view utf8_of(nb::handle str) {  // alive as long as that
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(str.ptr(), &size);
  if (!utf8) throw nb::python_error();
  return {utf8, size_t(size)};
}

// `wanted` says what the argument has to be. No std::string: it would be made on every call.
std::string_view text_of(nb::handle argument, const char* wanted) {
  if (!nb::isinstance<nb::str>(argument)) throw InvalidType(std::string(wanted) + ", got " + shown(argument));
  return utf8_of(argument);
}

// ["cuda:0", "cuda:2"] as "cuda:0,cuda:2".
nb::object joined(nb::handle devices) {
  if (nb::len(devices) == 0) throw InvalidValue(std::string(device_values) + ", got an empty list");
  nb::list names;
  for (const nb::handle device : devices) {
    const std::string_view name = text_of(device, device_values);
    if (parse_device(name).kind != Device::cuda || name == "cuda:all" || name.find(',') != name.npos)
      throw InvalidValue(std::string(device_values) + ": a list is of CUDA devices as 'cuda:0', got '" +
                         std::string(name) + "' in " + shown(devices));
    names.append(device);
  }
  return nb::str(",").attr("join")(names);
}

[[noreturn]] void refuse(const char* function, const char* name, const char* wanted, nb::handle got) {
  throw InvalidType(std::string(function) + ": " + name + " must be " + wanted + ", got " + shown(got));
}

[[noreturn]] void out_of_range(const char* function, const char* name, const std::string& got, const char* range) {
  throw InvalidValue(std::string(function) + ": " + name + "=" + got + " is beyond the range of " + range);
}

// Of Python's own error, which has been cleared: no number, or one that is too large for a C type.
[[noreturn]] void refuse_number(const char* function, const char* name, const char* wanted, nb::handle given,
                                const char* range) {
  const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError);
  if (!too_large && !PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  PyErr_Clear();
  if (too_large) out_of_range(function, name, shown(given), range);
  refuse(function, name, wanted, given);
}

}  // namespace

Precision parse_precision(std::string_view text) {
  if (text == "accurate") return Precision::accurate;
  if (text == "strict") return Precision::strict;
  if (text == "reproducible") return Precision::reproducible;
  throw InvalidValue(std::string(precision_values) + ", got '" + quoted(text) + "'");
}

OtherTypes parse_dtype(const char* function, nb::handle dtype) {
  if (dtype.is_none()) return OtherTypes::offer;
  if (!names_float32(dtype)) refuse(function, "dtype", "None or np.float32, in which everything is computed", dtype);
  return OtherTypes::convert;
}

std::optional<Triangle> parse_uplo(const char* function, nb::handle uplo) {
  if (uplo.is_none()) return std::nullopt;
  constexpr const char* wanted = "None, 'L' or 'U'";
  if (!nb::isinstance<nb::str>(uplo)) refuse(function, "uplo", wanted, uplo);
  const std::string_view letter = utf8_of(uplo);
  if (letter == "L") return Triangle::lower;
  if (letter == "U") return Triangle::upper;
  throw InvalidValue(std::string(function) + ": uplo must be " + wanted + ", got " + shown(uplo));
}

bool parse_flag(const char* function, const char* name, nb::handle flag) {
  if (flag.ptr() == Py_True) return true;
  if (flag.ptr() == Py_False) return false;
  if (is_numpy_bool(flag)) return PyObject_IsTrue(flag.ptr()) == 1;
  refuse(function, name, "True or False", flag);
}

float to_float32(const char* function, const char* name, nb::handle given) {
  const double value = PyFloat_AsDouble(given.ptr());
  if (value == -1.0 && PyErr_Occurred()) refuse_number(function, name, "a real number", given, "float32");
  const float rounded = float(value);
  if (std::isinf(rounded) && !std::isinf(value)) out_of_range(function, name, to_string(value), "float32");
  return rounded;
}

int64_t to_integer(const char* function, const char* name, nb::handle given) {
  const nb::object index = nb::steal(PyNumber_Index(given.ptr()));
  if (!index.is_valid()) refuse_number(function, name, "an int", given, "64 bits");
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) refuse_number(function, name, "an int", given, "64 bits");
  return value;
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
      throw InvalidType("stream.__cuda_stream__() must give (version, handle), two ints, got " + shown(value));
    if (version != 0)
      throw InvalidValue("stream.__cuda_stream__() gave version " + std::to_string(version) +
                         " of the protocol; fastlinalg knows version 0");
    return stream_of(handle);
  }
  uintptr_t handle = 0;
  if (PyBool_Check(value.ptr()) || !nb::try_cast(value, handle))
    throw InvalidType("stream must be None, an int or an object with __cuda_stream__, got " + shown(stream));
  return stream_of(handle);
}

Options parse_options(const char* function, nb::handle kernel, nb::handle precision, nb::handle device,
                      nb::handle stream) {
  Options options;
  if (precision.is_valid()) options.precision = parse_precision(text_of(precision, precision_values));
  const bool is_list = nb::isinstance<nb::list>(device) || nb::isinstance<nb::tuple>(device);
  if (is_list) options.device_list = joined(device);
  options.device = text_of(is_list ? options.device_list : device, device_values);
  options.call.device = parse_device(options.device);
  options.call.stream = parse_stream(stream);
  if (!kernel.is_none()) {
    if (!nb::isinstance<nb::str>(kernel)) refuse(function, "kernel", "a name or None", kernel);
    options.call.kernel = utf8_of(kernel);
    if (options.call.kernel.empty())
      throw InvalidValue(std::string(function) + ": kernel must be a name or None, got ''");
  }
  return options;
}

}  // namespace fl::py
