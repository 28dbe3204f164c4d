#include "bindings/calls/logging.h"

#include <mutex>
#include <unordered_set>
#include <utility>

#include "bindings/arrays/gil.h"
#include "runtime/fork.h"

namespace fl::py {
namespace {

constexpr int logging_debug = 10;

nb::object* logger = nullptr;  // leaked on purpose: the interpreter may be gone when statics are destroyed

struct Logged {
  std::mutex mutex;
  std::unordered_set<std::string> lines;
};

}  // namespace

void set_logger(nb::object object) {
  if (!logger) logger = new nb::object;
  *logger = std::move(object);
}

bool has_logger() { return logger; }

bool logs_debug() { return nb::cast<bool>(logger->attr("isEnabledFor")(logging_debug)); }

void log_once(const std::string& line) {
  static constinit PerProcess<Logged> logged;
  {
    Logged& seen = logged.get();
    const std::lock_guard lock(seen.mutex);
    if (!seen.lines.insert(line).second) return;
  }
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
