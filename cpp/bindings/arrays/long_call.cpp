#include "bindings/arrays/long_call.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bindings/arrays/gil.h"
#include "core/errors.h"
#include "runtime/call_watch.h"
#include "runtime/fork.h"
#include "runtime/per_thread.h"

namespace fl::py {
namespace {

struct Progress {
  PyObject* callback = nullptr;  // a reference of the thread's
};

PyObject* progress_callback() {
  const Progress* const own = per_thread<Progress>();
  return own ? own->callback : nullptr;
}

// Python runs the handlers of signals in its main thread alone: in that of the process, unless it is embedded in one.
bool is_main_thread() { return ::syscall(SYS_gettid) == getpid(); }

class Waiting {
 public:
  explicit Waiting(bool handles_signals) : handles_signals_(handles_signals) {}

  bool look(double done) {
    const GilAcquired gil;
    try {
      if (handles_signals_ && PyErr_CheckSignals() != 0) throw nb::python_error();
      if (const auto now = Clock::now(); now >= next_) {
        tell(done);
        next_ = now + 2 * watch_interval();
      }
      if (fork_generation() != generation_)
        throw std::runtime_error("this process was forked within a call, which its parent alone has the threads of");
    } catch (...) {  // nothing may pass the kernel that asks
      error_ = std::current_exception();
    }
    return !error_;
  }
  void finish() {
    if (error_) std::rethrow_exception(error_);
    if (told_) tell(1.0);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void tell(double done) {
    const nb::object callback = set_progress(nb::none());  // not of calls of its own
    if (callback.is_none()) return;
    told_ = true;
    struct Again {
      const nb::object& callback;
      ~Again() { set_progress(callback); }
    } again{callback};
    called([&] { return PyObject_CallFunction(callback.ptr(), "d", done); });
  }

  const unsigned generation_ = fork_generation();
  bool handles_signals_, told_ = false;
  Clock::time_point next_ = Clock::now() + 2 * watch_interval();
  std::exception_ptr error_;
};

}  // namespace

nb::object set_progress(nb::object callback) {
  Progress* const own = per_thread<Progress>();
  if (!own) throw std::bad_alloc();
  PyObject* const before = std::exchange(own->callback, callback.is_none() ? nullptr : callback.release().ptr());
  return before ? nb::steal(before) : nb::none();
}

void run_long(double steps, const std::function<void()>& run) {
  const bool handles_signals = is_main_thread();
  Waiting waiting(handles_signals);
  {
    const GilReleased released;
    std::optional<CallWatch> watch;
    if (handles_signals || progress_callback()) watch.emplace(steps, [&](double done) { return waiting.look(done); });
    try {
      run();
    } catch (const CallEnded&) {
    }
  }
  waiting.finish();
}

}  // namespace fl::py
