// A value that is computed when it is first asked for, and kept to the end of the process.
#pragma once

#include <atomic>
#include <memory>

namespace fl {

// In place of a function-local static, whose guard is a lock that is held during the computation. Where that calls
// Python, one thread would have the guard and wait for the GIL while another has the GIL and waits for the guard; and a
// child of fork would wait for a thread that only its parent has. Here nobody waits: threads that ask at the same time
// each compute the value, and all get the one that was ready first.
// Make it `static constinit`, or a guard is back. A value that holds Python objects is asked for with the GIL.
template <class T>
class Lazy {
 public:
  template <class Compute>
  T& get(Compute&& compute) {
    if (T* const there = value_.load(std::memory_order_acquire)) return *there;
    std::unique_ptr<T> fresh(new T(compute()));
    T* first = nullptr;
    if (!value_.compare_exchange_strong(first, fresh.get(), std::memory_order_acq_rel)) return *first;
    return *fresh.release();
  }

 private:
  std::atomic<T*> value_{nullptr};  // never freed: threads may ask while the process ends
};

}  // namespace fl
