// A call that somebody waits for: between blocks of its work, panels or tiles, the calling thread may say how far it is
// and be told to end. Where there is none the cost is a test of a pointer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "core/context.h"
#include "core/export.h"

namespace fl {

// Between two looks: 50 ms, unless a test has set it.
FL_EXPORT std::chrono::microseconds watch_interval();
FL_EXPORT void set_watch_interval(std::chrono::microseconds interval);

// While one lives it is that of this thread. A call that is told to end leaves out what is left, and returns or throws
// CallEnded when nothing touches its operands any more; the result has been written in part.
class FL_EXPORT CallWatch : public Watch {
 public:
  // `look(done)`, a fraction of `steps`, which never goes back, is called from time to time; false: the call is to end.
  // It may make calls of its own, which are not watched.
  CallWatch(double steps, std::function<bool(double)> look);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;
  static CallWatch* current();  // null: nobody waits

  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  // By the calling thread, between tasks, of which `done` of `all` have begun. Whether to go on.
  bool goes_on(int64_t done, int64_t all) {
    if (ended()) return false;
    const Clock::time_point now = Clock::now();
    return now < next_ || look_at(double(done) / double(all));
  }
  // Whether to go on, asked now: it is `done`, a fraction of all.
  bool look_at(double done);

 private:
  using Clock = std::chrono::steady_clock;
  static CallWatch* set_current(CallWatch* watch);  // returns what was
  bool add(int64_t steps, bool is_caller);

  double all_steps_;
  std::function<bool(double)> look_;
  CallWatch* before_;
  double reached_ = 0;
  Clock::time_point next_ = Clock::now() + watch_interval();
  std::atomic<int64_t> steps_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace fl
