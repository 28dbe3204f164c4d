// CUDA events without times, from those that a device keeps.
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

// Some for one call, used in turn.
class Events {
 public:
  Events(int device, std::size_t count);
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  std::size_t count() const { return events_.size(); }
  cudaEvent_t operator[](std::size_t use) const { return events_[use % events_.size()]; }

 private:
  int device_;
  std::vector<cudaEvent_t> events_;
};

// What has been queued on one stream, each behind an event, and how much of it the device has done. If there is more of
// it than there are events, a wait for one may be one for a later one.
class EventQueue {
 public:
  EventQueue(int device, std::size_t count) : events_(device, count) {}

  std::size_t queued() const { return queued_; }
  std::size_t done() const { return done_; }
  bool all_done() const { return done_ == queued_; }
  bool has_unused() const { return queued_ < done_ + events_.count(); }
  cudaEvent_t operator[](std::size_t i) const { return events_[i]; }

  cudaEvent_t record(cudaStream_t stream);  // behind what has just been queued
  bool next_is_done();                      // whether one more is than before

 private:
  Events events_;
  std::size_t queued_ = 0, done_ = 0;
};

}  // namespace fl::cuda
