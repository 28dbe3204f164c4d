// The GIL for the life of an object, as nanobind's own guards do it, but surviving the end of the interpreter.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace fl::py {

namespace nb = nanobind;

// Before Python 3.14 a thread that wants the GIL back while the interpreter shuts down is ended by pthread_exit, whose
// unwinding must not pass C++ frames that catch everything: it would abort the process. Here it stops instead.
struct StopIfUnwound {
  bool armed = true;
  ~StopIfUnwound() {
    while (armed) pause();
  }
};
// The new reference that call() returns, by functions of Python's own: what they run may give up the GIL too. No object
// of C++ is in the way of the unwinding.
template <class Call>
nb::object called(const Call& call) {
  StopIfUnwound stop;
  PyObject* const result = call();
  stop.armed = false;
  if (!result) throw nb::python_error();
  return nb::steal(result);
}

// Releases the GIL.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() noexcept(false) {
    StopIfUnwound stop;
    PyEval_RestoreThread(state_);
    stop.armed = false;
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the GIL where it may have been released, as nb::gil_scoped_acquire does.
class GilAcquired {
 public:
  GilAcquired() {
    StopIfUnwound stop;
    state_ = PyGILState_Ensure();
    stop.armed = false;
  }
  ~GilAcquired() { PyGILState_Release(state_); }
  GilAcquired(const GilAcquired&) = delete;
  GilAcquired& operator=(const GilAcquired&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace fl::py
