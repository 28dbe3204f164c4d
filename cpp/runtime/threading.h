// How many CPU threads a call may use.
#pragma once

#include <cstdint>
#include <string>

#include "core/export.h"

namespace fl {

inline constexpr int most_threads = 256;  // of a call

// The setting of set_num_threads, else FASTLINALG_NUM_THREADS, else OMP_NUM_THREADS, else what affinity and cgroup say.
FL_EXPORT int num_threads();
FL_EXPORT void set_num_threads(int64_t n);    // n >= 1; throws InvalidValue
FL_EXPORT int max_threads();                  // what affinity and the cgroup quota allow
FL_EXPORT std::string ignored_num_threads();  // why FASTLINALG_NUM_THREADS says nothing; "" if it is unset or read

// While one lives, num_threads() keeps its value on this thread: the setting, but no more threads than the pool has.
// Each may have a workspace of its own, whether there is work for it or not.
class ThreadCount {
 public:
  ThreadCount();
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  int count() const { return count_; }

 private:
  int count_, before_;
};

}  // namespace fl
