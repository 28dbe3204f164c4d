#include "threading.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "errors.h"

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

int from_environment() {
  for (const char* name : {"FASTLINALG_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    if (text && std::atoi(text) > 0) return std::atoi(text);
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
    setting.store(n, std::memory_order_relaxed);
  }
  return n;
}

ThreadCount::ThreadCount() : count_(num_threads()), before_(held) { held = count_; }
ThreadCount::~ThreadCount() { held = before_; }

void set_num_threads(int n) {
  if (n < 1) throw InvalidValue("the number of threads must be at least 1, got " + std::to_string(n));
  setting.store(n, std::memory_order_relaxed);
}

}  // namespace fl
