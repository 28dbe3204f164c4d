#include "cuda/runtime/events.h"

#include <mutex>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"

namespace fl::cuda {
namespace {

struct IdleEvents {
  std::mutex mutex;  // guards what follows; never held during a CUDA call
  std::vector<cudaEvent_t> events;
  std::size_t created = 0;  // `events` has room for all of them, so that giving one back cannot fail
};

cudaEvent_t create_event() {
  const AllowDuringCapture allow;
  cudaEvent_t event = nullptr;
  FL_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

void take(IdleEvents& idle, std::size_t count, std::vector<cudaEvent_t>& events) {
  const std::lock_guard lock(idle.mutex);
  for (; events.size() < count && !idle.events.empty(); idle.events.pop_back()) events.push_back(idle.events.back());
  idle.created += count - events.size();
  idle.events.reserve(idle.created);
}

void give_back(IdleEvents& idle, const std::vector<cudaEvent_t>& events) noexcept {
  const std::lock_guard lock(idle.mutex);
  for (const cudaEvent_t event : events) idle.events.push_back(event);
}

}  // namespace

cudaEvent_t borrow_event(int device) {
  IdleEvents& idle = per_device<IdleEvents>(device);
  {
    const std::lock_guard lock(idle.mutex);
    if (!idle.events.empty()) {
      const cudaEvent_t event = idle.events.back();
      idle.events.pop_back();
      return event;
    }
    idle.events.reserve(++idle.created);
  }
  return create_event();
}

void give_back_event(int device, cudaEvent_t event) noexcept {
  IdleEvents& idle = per_device<IdleEvents>(device);
  const std::lock_guard lock(idle.mutex);
  idle.events.push_back(event);
}

Events::Events(int device, std::size_t count) : device_(device) {
  IdleEvents& idle = per_device<IdleEvents>(device);
  events_.reserve(count);
  take(idle, count, events_);
  try {
    while (events_.size() < count) events_.push_back(create_event());
  } catch (...) {
    give_back(idle, events_);
    throw;
  }
}

Events::~Events() { give_back(per_device<IdleEvents>(device_), events_); }

cudaEvent_t EventQueue::record(cudaStream_t stream) {
  const cudaEvent_t event = events_[queued_];
  FL_CUDA(cudaEventRecord(event, stream));
  ++queued_;
  return event;
}

bool EventQueue::next_is_done() {
  if (all_done()) return false;
  const cudaError_t error = cudaEventQuery(events_[done_]);
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  if (error != cudaSuccess) fail(error, "cudaEventQuery", __FILE__, __LINE__);
  ++done_;
  return true;
}

}  // namespace fl::cuda
