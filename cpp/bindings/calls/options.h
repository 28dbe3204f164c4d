// The keyword arguments that the public functions share.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>

#include "bindings/arrays/call_location.h"
#include "core/problem.h"
#include "run/run.h"

namespace fl::py {

struct Options {
  Precision precision = Precision::accurate;
  std::string_view device;  // as the caller gave it, alive as long as the argument and `device_list`
  nb::object device_list;   // where it was a list: the text that says the same
  CallOptions call;
};
// A null `precision` is the default.
Options parse_options(const char* function, nb::handle kernel, nb::handle precision, nb::handle device,
                      nb::handle stream);
OtherTypes parse_dtype(const char* function, nb::handle dtype);  // None, or what names float32
Precision parse_precision(std::string_view text);
std::optional<Triangle> parse_uplo(const char* function, nb::handle uplo);   // None is the whole
bool parse_flag(const char* function, const char* name, nb::handle flag);    // True or False, NumPy's too
float to_float32(const char* function, const char* name, nb::handle value);  // what is finite has to stay so
int64_t to_integer(const char* function, const char* name, nb::handle value);
void* parse_stream(nb::handle stream);  // None, an int, or an object with __cuda_stream__

// Where a call whose operands are known runs.
inline void set_location(CallOptions& options, const CallLocation& location) {
  if (!location.on_device()) return;
  options.device = {Device::cuda, location.device()};
  options.stream = location.stream();
  options.device_memory = true;
}

}  // namespace fl::py
