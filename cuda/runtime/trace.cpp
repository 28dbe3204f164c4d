#include "cuda/runtime/trace.h"

#include <chrono>

namespace fl::cuda {
namespace {
thread_local std::vector<TraceEvent>* collecting = nullptr;
}  // namespace

std::vector<TraceEvent>* current_trace() { return collecting; }

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<TraceEvent> trace_of(const std::function<void()>& call) {
  std::vector<TraceEvent> events;
  struct Collect {
    explicit Collect(std::vector<TraceEvent>* to) { collecting = to; }
    ~Collect() { collecting = nullptr; }
  } collect(&events);
  const double start = now_us();
  call();
  events.push_back({"end", 0, now_us()});
  for (TraceEvent& event : events) event.us -= start;
  return events;
}

}  // namespace fl::cuda
