#include "bindings/calls/logging.h"

#include <utility>

#include "bindings/arrays/gil.h"
#include "runtime/said_lines.h"

namespace fl::py {
namespace {

constexpr int logging_debug = 10;

nb::object* logger = nullptr;  // leaked on purpose: the interpreter may be gone when statics are destroyed

}  // namespace

void set_logger(nb::object object) {
  if (!logger) logger = new nb::object;
  *logger = std::move(object);
}

bool has_logger() { return logger; }

bool logs_debug() {
  return nb::cast<bool>(called([] { return PyObject_CallMethod(logger->ptr(), "isEnabledFor", "i", logging_debug); }));
}

void log_once(const std::string& line) {
  static constinit SaidLines said;
  if (!said.add(line)) return;
  const GilAcquired gil;
  called([&] { return PyObject_CallMethod(logger->ptr(), "debug", "ss", "%s", line.c_str()); });
}

nb::object any_text(const std::string& text) {
  PyObject* const decoded = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
  if (!decoded) throw nb::python_error();
  return nb::steal(decoded);
}

void warn(const std::string& line) {
  if (!logger) return;
  const nb::object text = any_text(line);
  called([&] { return PyObject_CallMethod(logger->ptr(), "warning", "sO", "%s", text.ptr()); });
}

}  // namespace fl::py
