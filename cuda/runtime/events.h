// CUDA events without times, from those that a device keeps. There are never more than calls needed at the same time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace fl::cuda {

cudaEvent_t borrow_event(int device);
void give_back_event(int device, cudaEvent_t event) noexcept;

class EventLease {
 public:
  explicit EventLease(int device) : device_(device), event_(borrow_event(device)) {}
  ~EventLease() { give_back_event(device_, event_); }
  EventLease(const EventLease&) = delete;
  EventLease& operator=(const EventLease&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  int device_;
  cudaEvent_t event_;
};

// Those of one call.
class Events {
 public:
  Events(int device, std::size_t count);
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  cudaEvent_t operator[](std::size_t i) const { return events_[i]; }

 private:
  int device_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace fl::cuda
