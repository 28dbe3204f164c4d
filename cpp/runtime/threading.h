// How many CPU threads a call may use.
#pragma once

#include <cstdint>
#include <string>

#include "core/export.h"

namespace fl {

inline constexpr int most_threads = 256;  // of a call: no setting is larger

// The setting of set_num_threads, else FASTLINALG_NUM_THREADS, else OMP_NUM_THREADS, else what affinity and cgroup say.
FL_EXPORT int num_threads();
FL_EXPORT void set_num_threads(int64_t n);    // 1 to most_threads; throws InvalidValue
FL_EXPORT int max_threads();                  // what affinity and the cgroup quota allow
FL_EXPORT std::string ignored_num_threads();  // why FASTLINALG_NUM_THREADS does not count; "" if it is unset or does

// While one lives, num_threads() keeps its value on this thread.
class ThreadCount {
 public:
  ThreadCount() : ThreadCount(num_threads()) {}
  explicit ThreadCount(int count);
  ~ThreadCount();
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  int count() const { return count_; }

 private:
  int count_, before_ = 0;
};

}  // namespace fl
