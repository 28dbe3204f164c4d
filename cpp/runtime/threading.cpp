#include "runtime/threading.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/errors.h"
#include "core/text.h"
#include "runtime/cgroup.h"
#include "runtime/per_thread.h"

namespace fl {
namespace {

// Of the process: of its first thread. Another one that is bound to a core calls as it would without that.
int affinity() {
  cpu_set_t set;
  if (sched_getaffinity(getpid(), sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

// "4", " 4", or the first of "4,2", as OpenMP has it for nested regions. 0 for anything else, also what no int holds.
int leading_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" +");
  if (first == std::string_view::npos) return 0;
  int n = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + first, end, n);
  const bool whole = rest == end || *rest == ',' || *rest == ' ';
  return error == std::errc() && whole ? std::max(n, 0) : 0;
}

constexpr const char* own_variable = "FASTLINALG_NUM_THREADS";

int from_environment() {
  for (const char* name : {own_variable, "OMP_NUM_THREADS"}) {
    const char* const text = std::getenv(name);
    if (const int n = text ? leading_number(text) : 0) return std::min(n, most_threads);
  }
  return 0;
}

std::atomic<int> setting{0};
// The number of threads of the call that this thread is in; 0: none.
struct Held {
  int count = 0;
};
int held() {
  const Held* const of_thread = per_thread<Held>();
  return of_thread ? of_thread->count : 0;
}

}  // namespace

int max_threads() {
  const int quota = cgroup_limits().cpus, cores = affinity();
  return std::min({quota ? quota : cores, cores, most_threads});
}

int num_threads() {
  if (const int count = held()) return count;
  int n = setting.load(std::memory_order_relaxed);
  if (n == 0) {
    n = from_environment();
    if (n == 0) n = max_threads();
    int unset = 0;  // unless another thread has called set_num_threads meanwhile
    if (!setting.compare_exchange_strong(unset, n, std::memory_order_relaxed)) n = unset;
  }
  return n;
}

std::string ignored_num_threads() {
  const char* const text = std::getenv(own_variable);
  if (!text || !*text) return "";
  const int n = leading_number(text);
  const std::string setting_is = std::string(own_variable) + "=" + quoted(text) + " is ";
  if (n == 0) return setting_is + "ignored: it must be a number of threads, 1 or more";
  return n <= most_threads ? "" : setting_is + "too many: " + std::to_string(most_threads) + " threads are the most";
}

ThreadCount::ThreadCount(int count) : count_(count) {
  Held* const of_thread = per_thread<Held>();
  if (!of_thread) throw OutOfMemory("could not allocate what this thread keeps of its calls");
  before_ = std::exchange(of_thread->count, count_);
}
// A thread that computes while the process ends has lost what was its own.
ThreadCount::~ThreadCount() {
  if (Held* const of_thread = per_thread<Held>()) of_thread->count = before_;
}

void set_num_threads(int64_t n) {
  if (n < 1) throw InvalidValue("the number of threads must be at least 1, got " + std::to_string(n));
  if (n > most_threads)
    throw InvalidValue("the number of threads must be at most " + std::to_string(most_threads) + ", got " +
                       std::to_string(n));
  setting.store(int(n), std::memory_order_relaxed);
}

}  // namespace fl
