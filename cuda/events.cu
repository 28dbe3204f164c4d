#include "events.h"

#include <mutex>

#include "check.h"
#include "device_guard.h"
#include "per_device.h"

namespace fl::cuda {
namespace {

struct Idle {
  std::mutex mutex;  // guards events; never held during a CUDA call
  std::vector<cudaEvent_t> events;
  std::size_t created = 0;  // `events` has room for all of them, so that giving one back cannot fail
};

void take(Idle& idle, std::size_t count, std::vector<cudaEvent_t>& events) {
  const std::lock_guard lock(idle.mutex);
  for (; events.size() < count && !idle.events.empty(); idle.events.pop_back()) events.push_back(idle.events.back());
  idle.created += count - events.size();
  idle.events.reserve(idle.created);
}

void give_back(Idle& idle, const std::vector<cudaEvent_t>& events) noexcept {
  const std::lock_guard lock(idle.mutex);
  for (const cudaEvent_t event : events) idle.events.push_back(event);
}

}  // namespace

Events::Events(int device, std::size_t count) : device_(device) {
  Idle& idle = per_device<Idle>(device);
  events_.reserve(count);
  take(idle, count, events_);
  const AllowDuringCapture allow;
  while (events_.size() < count) {
    cudaEvent_t event = nullptr;
    if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); error != cudaSuccess) {
      give_back(idle, events_);
      fail(error, "cudaEventCreateWithFlags", __FILE__, __LINE__);
    }
    events_.push_back(event);
  }
}

Events::~Events() { give_back(per_device<Idle>(device_), events_); }

}  // namespace fl::cuda
