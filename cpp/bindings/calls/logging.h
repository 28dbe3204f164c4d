// The package's logger, which Python hands over (python/fastlinalg/__init__.py).
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace fl::py {

namespace nb = nanobind;

void set_logger(nb::object logger);
bool has_logger();
bool logs_debug();                             // asks Python
void log_once(const std::string& line);        // at level DEBUG, unless it has been logged before; without the GIL too
nb::object any_text(const std::string& text);  // a str of text that may name a file, and those have names of any bytes
void warn(const std::string& line);            // with the GIL

}  // namespace fl::py
