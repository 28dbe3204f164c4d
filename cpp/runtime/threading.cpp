#include "runtime/threading.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

#include "core/errors.h"
#include "core/quoted.h"

namespace fl {
namespace {

// cgroup v2: "max 100000" or "quota period" in microseconds. 0 if there is no limit.
int cgroup_quota() {
  long quota = 0, period = 0;
  if (FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    if (std::fscanf(file, "%ld %ld", &quota, &period) != 2) quota = 0;
    std::fclose(file);
  }
  return quota > 0 && period > 0 ? int((quota + period - 1) / period) : 0;
}

int affinity() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
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
    if (const int n = text ? leading_number(text) : 0) return n;
  }
  return 0;
}

std::atomic<int> setting{0};
thread_local int held = 0;

}  // namespace

int max_threads() {
  const int quota = cgroup_quota(), cores = affinity();
  return quota ? std::min(quota, cores) : cores;
}

int num_threads() {
  if (held) return held;
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
  if (!text || !*text || leading_number(text)) return "";
  return std::string(own_variable) + "=" + quoted(text) + " is ignored: it must be a number of threads, 1 or more";
}

ThreadCount::ThreadCount() : count_(std::min(num_threads(), most_threads)), before_(held) { held = count_; }
ThreadCount::~ThreadCount() { held = before_; }

void set_num_threads(int64_t n) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  if (n < 1) throw InvalidValue("the number of threads must be at least 1, got " + std::to_string(n));
  if (n > most)
    throw InvalidValue("the number of threads must be at most " + std::to_string(most) + ", got " + std::to_string(n));
  setting.store(int(n), std::memory_order_relaxed);
}

}  // namespace fl
