#include "bindings/calls/call.h"

#include <atomic>

#include "bindings/arrays/gil.h"
#include "bindings/arrays/long_call.h"
#include "bindings/arrays/results.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/copies.h"
#include "bindings/calls/logging.h"
#include "core/errors.h"
#include "core/operations.h"
#include "device/device_memory.h"
#include "run/inspection.h"
#include "runtime/per_thread.h"

namespace fl::py {
namespace {

// Asking the logger costs a Python call, so a shape that this thread has just used is not asked about again.
template <class Args>
bool wants_log(const Args& args) {
  return has_logger() && is_new_to_thread<Args>(sizes_of(args)) && logs_debug();
}

// Releasing the GIL costs about 50 ns, as much as the smallest products themselves.
bool worth_releasing(double steps) { return steps > 20e3; }

// Once, at the first call. Apart from the calls' own code, which is no longer without it.
[[gnu::noinline, gnu::cold]] void warn_of_ignored_settings() {
  for (const std::string& ignored : ignored_settings()) warn(ignored);
}

// Once, at the first call that may use a device.
[[gnu::noinline, gnu::cold]] void warn_of_ignored_device_settings() {
  for (const std::string& ignored : ignored_device_settings()) warn(ignored);
}

bool first_time(std::atomic<bool>& done) { return !done.load(std::memory_order_relaxed) && !done.exchange(true); }

// run(options of the call, which report the choice of kernel).
template <class Args, class Run>
auto with_log(const Args& args, const Options& options, Run&& run) {
  before_any_call(options);
  CallOptions call = options.call;
  const std::function<void(const std::string&)> log = [&args](const std::string& line) {
    log_once(describe(args) + " -> " + line);
  };
  if (has_logger()) call.log = &log;
  call.log_choice = wants_log(args);
  return run(call);
}

template <class Run>
void release_if_worth_it(double steps, Device device, bool in_device_memory, Run&& run) {
  if (device.kind == Device::cpu && !worth_releasing(steps)) return run();
  if (is_long(steps) && !in_device_memory) return run_long(steps, run);
  const GilReleased released;
  run();
}

}  // namespace

Target::Target(const char* function, nb::handle out, const Shape& shape, std::initializer_list<const Array*> inputs,
               CallLocation& location, const Array* replaced, const char* name)
    : location_(&location),
      fresh_(out.is_none()),
      out_(fresh_ ? new_result(shape, location) : Array(out, name, Array::write, location)) {
  if (fresh_) {
    if (location.on_device()) location.keep_result(nb::borrow(out_.object()));
    return;
  }
  if (!std::equal(shape.begin(), shape.end(), out_.shape().begin(), out_.shape().end()))
    throw InvalidValue(std::string(function) + ": " + name + " has shape " + to_string(out_.shape()) +
                       ", the result needs " + to_string(shape));
  if (out_.overlaps_itself())
    throw InvalidValue(std::string(function) + ": elements of " + name +
                       " share memory (a broadcast or overlapping view)");
  replaces_ = replaced && out_.same_view(*replaced);  // what is read and is not aligned has been copied
  bool in_the_way = out_.misaligned();
  for (const Array* input : inputs)
    in_the_way = in_the_way || (!(replaces_ && input == replaced) && out_.overlaps(*input));
  if (in_the_way) stage();
}

void Target::stage() {
  if (staged_) return;
  staged_ = true;
  const Shape shape{out_.shape().begin(), out_.shape().end()};
  if (!location_->on_device()) {
    temporary_ = Array(empty(shape), "out", Array::write);
    return;
  }
  size_t bytes = sizeof(float);
  for (int64_t size : shape) bytes *= size_t(size);
  const GilReleased released;
  device_memory_ = cuda::allocate(location_->device(), bytes, location_->stream());
  temporary_ = Array(static_cast<float*>(device_memory_.get()), shape);
}

void Target::copy(const Array& to, const Array& from) const {
  if (to.is_numpy() && from.is_numpy()) return copy_into(to.object(), from.object());
  CallOptions options;
  set_location(options, *location_);
  copy_elements(to, from, options);
}

bool Target::leaves_alone(const Array& x) const { return staged_ || !out_.overlaps(x); }

void Target::preload(const Array& c) {
  if (array().same_view(c)) return;
  const bool numpy = array().is_numpy() && c.is_numpy();
  if (out_.overlaps(c) && !(numpy && out_.ndim() > 1)) stage();  // NumPy copies some vectors over each other wrongly
  copy(array(), c);
}

void Target::load_out() {
  if (staged_) copy(temporary_, out_);
}

void Target::write_back() {
  if (staged_) copy(out_, temporary_);
}

nb::object Target::result() {
  nb::object result = nb::borrow(out_.object());
  if (!fresh_) return result;
  const bool is_scalar = out_.ndim() == 0 && location_->library().kind == Library::numpy;  // as NumPy returns one
  return is_scalar ? nb::object(result[nb::make_tuple()]) : as_callers_own(std::move(result), *location_);
}

nb::object Target::finish() {
  write_back();
  finish_call(*location_);
  return result();
}

void finish_call(CallLocation& location) {
  location.finish();
  if (*location.overflowed()) report_overflow();  // those who set it are done
}

void before_any_call(const Options& options) {
  static constinit std::atomic<bool> any{false}, on_device{false};
  ensure_tuned();
  if (first_time(any)) warn_of_ignored_settings();
  if (options.call.device.kind != Device::cpu && first_time(on_device)) warn_of_ignored_device_settings();
}

template <class Args>
void call(const Args& args, const Options& options) {
  with_log(args, options, [&](const CallOptions& call) {
    if (run_short(args, call)) return;
    release_if_worth_it(step_count(args), call.device, call.device_memory, [&] { decide_and_run(args, call); });
  });
}

void call_triangle(const SgemmArgs& args, Triangle part, OtherTriangle other_triangle, const Options& options) {
  with_log(args, options, [&](const CallOptions& call) {
    release_if_worth_it(step_count(args) / 2, call.device, call.device_memory,
                        [&] { run_triangle(args, part, other_triangle, call); });
  });
}

std::unique_ptr<Group> make_group(std::vector<Product> products, const Options& options, Group::Use use) {
  before_any_call(options);
  static const std::function<void(const std::string&)> log = log_once;
  CallOptions call = options.call;
  if (has_logger()) call.log = &log;
  call.log_choice = has_logger() && logs_debug();
  const GilReleased released;
  return std::make_unique<Group>(std::move(products), call, use);
}

void call(Group& group, const Options& options, void* stream) {
  const CallOptions& call = options.call;
  release_if_worth_it(group.all_steps(), call.device, call.device_memory, [&] { group.run(stream); });
}

template <class Args>
Plan<Args> make_plan(const Args& args, const Options& options) {
  return with_log(args, options, [&](const CallOptions& call) {
    const GilReleased released;
    return Plan<Args>(args, call);
  });
}

template <class Args>
void call(Plan<Args>& plan, void* stream) {
  release_if_worth_it(step_count(plan.args()), plan.device(), plan.in_device_memory(), [&] { plan.execute(stream); });
}

#define FL_INSTANTIATE(Args)                                  \
  template void call(const Args&, const Options&);            \
  template Plan<Args> make_plan(const Args&, const Options&); \
  template void call(Plan<Args>&, void*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::py
