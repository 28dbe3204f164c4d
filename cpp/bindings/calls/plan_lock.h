// The methods of a plan, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <stdexcept>

#include "bindings/arrays/gil.h"
#include "runtime/fork.h"
#include "runtime/per_thread.h"

namespace fl::py {

// No other thread has this number, before or after: the system gives a thread's own id to the next one, and in a child
// of fork the id of a thread that is not there.
inline uint64_t this_thread_number() {
  static constinit std::atomic<uint64_t> last{0};
  struct Number {
    uint64_t value = ++last;
  };
  const Number* const number = per_thread<Number>();
  if (!number) throw std::bad_alloc();
  return number->value;
}

struct PlanMutex {
  PlanMutex() = default;
  ~PlanMutex() { mutex.free(); }
  PlanMutex(const PlanMutex&) = delete;
  PlanMutex& operator=(const PlanMutex&) = delete;

  PerProcess<std::mutex> mutex;
  std::atomic<uint64_t> holder{0};  // the number of a thread
};

// One thread at a time, and none waits for another while it holds the GIL. Nor for itself: a handler of the log, or the
// destructor of an operand, may come back to the plan in the midst of a method.
class PlanLock {
 public:
  explicit PlanLock(PlanMutex& plan) : plan_(plan) {
    if (plan_.holder == this_thread_number())
      throw std::runtime_error("a method of this plan is running in this thread, and no other can begin within it");
    mutex_ = &plan_.mutex.get();
    if (!mutex_->try_lock()) wait();
    cut_off_ = plan_.holder.exchange(this_thread_number()) != 0;
  }
  ~PlanLock() {
    plan_.holder = 0;
    mutex_->unlock();
  }
  PlanLock(const PlanLock&) = delete;
  PlanLock& operator=(const PlanLock&) = delete;

  // Whether a fork has cut off the method that had the lock before: its thread is in the parent alone.
  bool cut_off() const { return cut_off_; }

 private:
  void wait() {
    const GilReleased released;
    mutex_->lock();
  }

  PlanMutex& plan_;
  std::mutex* mutex_;
  bool cut_off_;
};

}  // namespace fl::py
