#include "cuda/runtime/stamps.h"

#include <chrono>

namespace fl::cuda {
namespace {
thread_local std::vector<Stamp>* collecting = nullptr;
}  // namespace

std::vector<Stamp>* current_stamps() { return collecting; }

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Stamp> stamps_of(const std::function<void()>& call) {
  std::vector<Stamp> stamps;
  struct Collect {
    explicit Collect(std::vector<Stamp>* to) { collecting = to; }
    ~Collect() { collecting = nullptr; }
  } collect(&stamps);
  const double start = now_us();
  call();
  stamps.push_back({"end", 0, now_us()});
  for (Stamp& stamp : stamps) stamp.us -= start;
  return stamps;
}

}  // namespace fl::cuda
