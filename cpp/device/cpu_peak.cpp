#include <algorithm>
#include <chrono>

#include "core/errors.h"
#include "core/peak_loop.h"
#include "device/hardware.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace fl {
namespace {

using Loop = int64_t (*)(int64_t);
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Rounds that take about 2 ms on one core.
int64_t calibrate(Loop loop) {
  for (int64_t rounds = 10000;; rounds *= 2) {
    const auto start = Clock::now();
    loop(rounds);
    const double s = seconds_since(start);
    if (s > 0.5e-3) return std::max<int64_t>(1, int64_t(double(rounds) * 2e-3 / s));
  }
}

double measure(Loop loop, int threads) {
  const int64_t rounds = calibrate(loop);
  double best = 0;
  for (int run = 0; run < 4; ++run) {
    int64_t per_round = 0;
    auto task = [&](int64_t index, int) {
      const int64_t ops = loop(rounds);
      if (index == 0) per_round = ops;
    };
    const auto start = Clock::now();
    parallel_for(threads, threads, task);
    best = std::max(best, double(per_round) * double(rounds) * threads / seconds_since(start) * 1e-9);
  }
  return best;
}

}  // namespace

double cpu_peak_gflops(int threads) {
  if (threads < 1) throw InvalidValue("the number of threads must be at least 1, got " + std::to_string(threads));
  threads = std::min(threads, most_threads);
  // Wider is not always faster (clock, double-pumped units): take the best of what this CPU has.
  double best = 0;
#if defined(__x86_64__)
  if (available(Needs::avx512f)) best = std::max(best, measure(peak_loop_avx512, threads));
  if (available(Needs::avx2_fma)) best = std::max(best, measure(peak_loop_avx2, threads));
#elif defined(__aarch64__)
  if (available(Needs::neon)) best = measure(peak_loop_neon, threads);
#endif
  return best > 0 ? best : measure(peak_loop_portable, threads);
}

}  // namespace fl
