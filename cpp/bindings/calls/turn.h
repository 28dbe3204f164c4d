// The methods of a plan, one at a time.
#pragma once

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "bindings/arrays/gil.h"

namespace fl::py {

struct TurnMutex {
  std::mutex mutex;
  std::atomic<std::thread::id> holder;
};

// One thread at a time, and none waits for another while it holds the GIL. Nor for itself: a handler of the log, or the
// destructor of an operand, may come back to the plan in the midst of a method.
class Turn {
 public:
  explicit Turn(TurnMutex& plan) : plan_(plan) {
    if (!plan_.mutex.try_lock()) wait();
    plan_.holder = std::this_thread::get_id();
  }
  ~Turn() {
    plan_.holder = std::thread::id();
    plan_.mutex.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  void wait() {
    if (plan_.holder == std::this_thread::get_id())
      throw std::runtime_error(
          "Matmul: a method of this plan is running in this thread, and no other can begin within it");
    const GilReleased released;
    plan_.mutex.lock();
  }

  TurnMutex& plan_;
};

}  // namespace fl::py
