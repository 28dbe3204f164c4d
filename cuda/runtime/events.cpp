#include "cuda/runtime/events.h"

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"

namespace fl::cuda {
namespace {

IdleHandles<cudaEvent_t>& idle(int device) { return per_device<IdleHandles<cudaEvent_t>>(device); }

cudaEvent_t create_event() {
  const AllowDuringCapture allow;
  cudaEvent_t event = nullptr;
  FL_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

}  // namespace

cudaEvent_t borrow_event(int device) {
  cudaEvent_t event = nullptr;
  return idle(device).take(&event, 1) ? event : create_event();
}

void give_back_event(int device, cudaEvent_t event) noexcept { idle(device).give_back(&event, 1); }

Events::Events(int device, std::size_t count) : device_(device), events_(count) {
  std::size_t have = idle(device).take(events_.data(), count);
  try {
    for (; have < count; ++have) events_[have] = create_event();
  } catch (...) {
    idle(device).give_back(events_.data(), have);
    throw;
  }
}

Events::~Events() { idle(device_).give_back(events_.data(), events_.size()); }

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
