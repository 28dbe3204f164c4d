// fastlinalg.explain: which kernel a call would take, and why. The words are python/fastlinalg/_explain.py's.
#include "bindings/calls/inspect.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "bindings/calls/call.h"
#include "bindings/calls/problems.h"
#include "core/errors.h"
#include "device/device.h"

namespace fl::py {
namespace {

constexpr const char* function = "explain";

// An array, or a shape: that of an array in host memory, in C order, aligned.
Array described(nb::handle given, const char* name, CallLocation& location) {
  if (!PyTuple_Check(given.ptr())) return Array(given, name, Array::read, location);
  Shape shape;
  for (nb::handle size : nb::borrow<nb::tuple>(given)) {
    shape.push_back(to_integer(function, name, size));
    if (shape.back() < 0 || shape.size() > size_t(max_dims))
      throw InvalidValue(std::string(function) + ": " + name + " is no shape of an array: " + text(nb::repr(given)));
  }
  location.add_host(name, given, {.kind = Library::numpy});
  return Array(static_cast<float*>(nullptr), shape);
}

nb::dict row_of(const Forecast& forecast) {
  nb::dict row;
  const Device device = forecast.device;
  row["device"] = device_text(device);
  row["kernel"] = forecast.kernel ? nb::object(nb::str(forecast.kernel)) : nb::none();
  row["us"] = forecast.us;
  row["triangle"] = forecast.triangle;
  row["steps"] = forecast.steps;
  nb::list others;
  for (const NotTaken& other : forecast.others) others.append(nb::make_tuple(other.name, other.reason, other.us));
  row["others"] = others;
  return row;
}

// Where operands in host memory could be computed as well.
std::optional<Device> other_device(const Forecast& forecast, const Options& options) {
  if (options.call.device_memory || options.call.device.kind != Device::automatic || !options.call.kernel.empty() ||
      !forecast.kernel)
    return std::nullopt;
  if (forecast.device.kind == Device::cuda) return Device{Device::cpu, 0};
  return cuda::device_count() > 0 ? std::optional(Device{Device::cuda, 0}) : std::nullopt;
}

template <class Args>
nb::dict explained(Problem<Args> problem, Options options) {
  std::optional<Args> first;
  int64_t runs = 0;
  problem.for_each_run(Array(static_cast<float*>(nullptr), problem.shape), [&](const Args& args) {
    if (++runs == 1) first = args;
  });
  nb::dict row;
  row["op"] = Operation<Args>::name;
  row["call"] = describe(*first);
  row["runs"] = runs;
  row["on_device"] = options.call.device_memory;
  const Forecast taken = forecast(*first, options);
  row["taken"] = row_of(taken);
  row["elsewhere"] = nb::none();
  if (const std::optional<Device> device = other_device(taken, options)) {
    options.call.device = *device;
    row["elsewhere"] = row_of(forecast(*first, options));
  }
  return row;
}

nb::dict explain(nb::handle a_in, nb::handle b_in, nb::handle trans_a, nb::handle trans_b, nb::handle kernel,
                 nb::handle precision, nb::handle device) {
  Options options = parse_options(function, kernel, precision, device, nb::none());
  CallLocation location(options.device, options.call.stream, OtherTypes::convert);
  Array a = described(a_in, "a", location);
  require_dims(function, "a", a, b_in.is_none() ? 2 : 1);
  const bool of_a = parse_flag(function, "trans_a", trans_a), of_b = parse_flag(function, "trans_b", trans_b);
  if (b_in.is_none()) {
    set_location(options.call, location);
    return explained(transpose_problem(function, a), options);
  }
  Array b = described(b_in, "b", location);
  require_dims(function, "b", b, 1);
  set_location(options.call, location);
  if (a.ndim() == 1 && b.ndim() == 1) return explained(dot_problem(function, a, b), options);
  if (b.ndim() == 1) return explained(gemv_problem(function, a, b, 1.0f, 0.0f, of_a), options);
  if (a.ndim() == 1) return explained(gemv_problem(function, b, a, 1.0f, 0.0f, !of_b), options);
  return explained(gemm_problem(function, a, b, 1.0f, 0.0f, of_a, of_b, options.precision), options);
}

}  // namespace

void bind_explain(nb::module_& m) {
  using nb::arg;
  m.def("explain", explain, arg("a").none(), arg("b").none(), arg("trans_a").none(), arg("trans_b").none(),
        arg("kernel").none(), arg("precision").none(), arg("device").none());
}

}  // namespace fl::py
