// fastlinalg.explain: which kernel a call would take, and why.
#include "bindings/calls/bind.h"

#include <nanobind/stl/string.h>

#include <optional>

#include "bindings/arrays/gil.h"
#include "bindings/arrays/objects.h"
#include "bindings/calls/call.h"
#include "bindings/calls/problems.h"
#include "core/errors.h"

namespace fl::py {
namespace {

constexpr const char* explain_function = "explain";

// An array, or a shape: that of an array in host memory, in C order, aligned.
Array described(nb::handle given, const char* name, CallLocation& location) {
  PyObject* const object = given.ptr();
  if (PyList_Check(object) || PyLong_Check(object) || PyUnicode_Check(object))
    throw InvalidType(std::string(explain_function) + ": " + name +
                      " must be an array or a tuple that is its shape, as (1000, 500), got " + shown(given));
  if (!PyTuple_Check(object)) return Array(given, name, Array::read, location);
  Shape shape;
  const std::string sizes = std::string("each size of ") + name;
  for (nb::handle size : nb::borrow<nb::tuple>(given)) {
    shape.push_back(to_integer(explain_function, sizes.c_str(), size));
    if (shape.back() < 0 || shape.size() > size_t(max_dims))
      throw InvalidValue(std::string(explain_function) + ": " + name + " is no shape of an array: " + shown(given));
  }
  location.add_host(name, given, {.kind = Library::numpy});
  return Array(static_cast<float*>(nullptr), shape);
}

template <class Args>
nb::dict explained(Problem<Args> problem, const Options& options) {
  if (!options.call.device_memory && !reads_stored(problem.args, options.call.kernel))
    problem.args.stored = {};  // they are converted first
  std::optional<Args> first;
  int64_t runs = 0;
  problem.for_each_run(Array(static_cast<float*>(nullptr), problem.shape), [&](const Args& args) {
    if (++runs == 1) first = args;
  });
  before_any_call(options);
  const Explanation answer = [&] {
    const GilReleased released;
    return explanation(*first, options.call, {.device = options.device, .runs = runs});
  }();
  const Forecast& taken = answer.taken;
  nb::dict others;
  for (const NotTaken& other : taken.others)
    others[other.name] = other.reason.empty() ? nb::object(nb::float_(other.us)) : nb::str(other.reason.c_str());
  return dict_of({{"op", taken.op ? taken.op : Operation<Args>::name},
                  {"device", device_text(taken.device)},
                  {"kernel", taken.kernel ? nb::object(nb::str(taken.kernel)) : nb::none()},
                  {"estimated_us", taken.us},
                  {"others", others},
                  {"text", answer.text}});
}

nb::dict explain(nb::handle a_in, nb::handle b_in, nb::handle trans_a, nb::handle trans_b, nb::handle kernel,
                 nb::handle precision, nb::handle device, nb::handle dtype) {
  Options options = parse_options(explain_function, kernel, precision, device, nb::none());
  CallLocation location(options.device, options.call.stream, parse_dtype(explain_function, dtype));
  Array a = described(a_in, "a", location);
  require_dims(explain_function, "a", a, b_in.is_none() ? 2 : 1);
  const bool of_a = parse_flag(explain_function, "trans_a", trans_a),
             of_b = parse_flag(explain_function, "trans_b", trans_b);
  if (b_in.is_none()) {
    if (of_a || of_b)
      throw InvalidValue(std::string(explain_function) + ": trans_a and trans_b are of products; b is None");
    set_location(options.call, location);
    return explained(transpose_problem(explain_function, a), options);
  }
  Array b = described(b_in, "b", location);
  require_dims(explain_function, "b", b, 1);
  require_matrix(explain_function, "a", a, of_a);
  require_matrix(explain_function, "b", b, of_b);
  set_location(options.call, location);
  const ProductTerms terms{explain_function, 1.0f, 0.0f, of_a, of_b, options.precision};
  return with_product_problem(terms, a, b, [&](auto problem) { return explained(std::move(problem), options); });
}

}  // namespace

void bind_explain(nb::module_& m) {
  using nb::arg;
  m.def("explain", explain, arg("a").none(), arg("b").none(), arg("trans_a").none(), arg("trans_b").none(),
        arg("kernel").none(), arg("precision").none(), arg("device").none(), arg("dtype").none());
}

}  // namespace fl::py
