#include "bindings/calls/call.h"

#include <cmath>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "bindings/arrays/gil.h"
#include "bindings/arrays/results.h"
#include "bindings/calls/copies.h"
#include "bindings/calls/tune.h"
#include "core/errors.h"
#include "core/operations.h"
#include "device/device.h"
#include "runtime/fork.h"

namespace fl::py {
namespace {

constexpr int logging_debug = 10;

nb::object* logger = nullptr;  // leaked on purpose: the interpreter may be gone when statics are destroyed

// Asking the logger costs a Python call, so a shape that this thread has just used is not asked about again.
template <class Args>
bool wants_log(const Args& args) {
  const auto sizes = sizes_of(args);
  thread_local std::optional<decltype(sizes_of(args))> last;
  if (!logger || last == sizes) return false;
  last = sizes;
  return nb::cast<bool>(logger->attr("isEnabledFor")(logging_debug));
}

struct Logged {
  std::mutex mutex;
  std::unordered_set<std::string> lines;
};

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

template <class Args>
std::function<void(const std::string&)> log_for(const Args& args) {
  return [&args](const std::string& line) { log_once(describe(args) + " -> " + line); };
}

// Releasing the GIL costs about 50 ns, as much as the smallest products themselves.
template <class Args>
bool worth_releasing(const Args& args) {
  return step_count(args) > 20e3;
}

}  // namespace

void set_logger(nb::object object) {
  if (!logger) logger = new nb::object;
  *logger = std::move(object);
}

void warn(const std::string& line) {
  if (!logger) return;
  // It may name a file, and those have names of any bytes.
  PyObject* const text = PyUnicode_DecodeUTF8(line.data(), Py_ssize_t(line.size()), "replace");
  if (!text) throw nb::python_error();
  logger->attr("warning")("%s", nb::steal(text));
}

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

Target::Target(const char* function, nb::handle out, const Shape& shape, std::initializer_list<const Array*> inputs,
               Place& place, const Array* replaced)
    : place_(&place),
      fresh_(out.is_none()),
      out_(fresh_ ? new_result(shape, place) : nb::borrow(out), "out", Array::write, place) {
  if (fresh_) return;
  if (!std::equal(shape.begin(), shape.end(), out_.shape().begin(), out_.shape().end()))
    throw InvalidValue(std::string(function) + ": out has shape " + to_string(out_.shape()) + ", the result needs " +
                       to_string(shape));
  if (out_.overlaps_itself())
    throw InvalidValue(std::string(function) + ": elements of out share memory (a broadcast or overlapping view)");
  replaces_ = replaced && !out_.misaligned() && out_.same_view(*replaced);
  bool in_the_way = out_.misaligned();
  for (const Array* input : inputs)
    in_the_way = in_the_way || (!(replaces_ && input == replaced) && out_.overlaps(*input));
  if (in_the_way) use_stand_in(shape);
}

void Target::use_stand_in(const Shape& shape) {
  stand_in_ = true;
  if (!place_->on_device()) {
    temporary_ = Array(empty(shape), "out", Array::write);
    return;
  }
  size_t bytes = sizeof(float);
  for (int64_t size : shape) bytes *= size_t(size);
  const GilReleased released;
  device_memory_ = cuda::allocate(place_->device(), bytes, place_->stream());
  temporary_ = Array(static_cast<float*>(device_memory_.get()), shape);
}

void Target::copy(const Array& to, const Array& from) const {
  CallOptions options;
  set_place(options, *place_);
  copy_elements(to, from, options);
}

void Target::preload(const Array& c) {
  if (array().same_view(c)) return;
  if (array().is_numpy() && c.is_numpy()) return copy_into(array().object(), c.object());
  if (!stand_in_ && out_.overlaps(c)) use_stand_in({out_.shape().begin(), out_.shape().end()});
  copy(array(), c);
}

nb::object Target::finish() {
  if (stand_in_) {
    if (out_.is_numpy()) copy_into(out_.object(), temporary_.object());
    else copy(out_, temporary_);
  }
  place_->finish();
  nb::object result = nb::borrow(out_.object());
  return fresh_ ? as_callers_own(std::move(result), *place_) : result;
}

template <class Args>
void call(const Args& args, const Options& options) {
  ensure_tuned();
  CallOptions call = options.call;
  const auto log = log_for(args);
  if (logger) call.log = &log;
  call.log_choice = wants_log(args);
  if (run_short(args, call)) return;
  if (call.device.kind == Device::cpu && !worth_releasing(args)) return decide_and_run(args, call);
  const GilReleased released;
  decide_and_run(args, call);
}

template <class Args>
Plan<Args> make_plan(const Args& args, const Options& options) {
  ensure_tuned();
  CallOptions call = options.call;
  const auto log = log_for(args);
  if (logger) call.log = &log;
  call.log_choice = wants_log(args);
  const GilReleased released;
  return Plan<Args>(args, call);
}

template <class Args>
void call(Plan<Args>& plan, void* stream) {
  if (plan.device().kind == Device::cpu && !worth_releasing(plan.args())) return plan.execute(stream);
  const GilReleased released;
  plan.execute(stream);
}

#define FL_INSTANTIATE(Args)                                  \
  template void call(const Args&, const Options&);            \
  template Plan<Args> make_plan(const Args&, const Options&); \
  template void call(Plan<Args>&, void*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::py
