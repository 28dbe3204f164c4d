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

bool logs_debug() { return nb::cast<bool>(logger->attr("isEnabledFor")(logging_debug)); }

void log_once(const std::string& line) {
  static constinit SaidLines said;
  if (!said.add(line)) return;
  const GilAcquired gil;
  logger->attr("debug")("%s", line.c_str());
}

void warn(const std::string& line) {
  if (!logger) return;
  // It may name a file, and those have names of any bytes.
  PyObject* const text = PyUnicode_DecodeUTF8(line.data(), Py_ssize_t(line.size()), "replace");
  if (!text) throw nb::python_error();
  logger->attr("warning")("%s", nb::steal(text));
}

}  // namespace fl::py
