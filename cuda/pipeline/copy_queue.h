// What one call has queued on a copy engine of a device, in one direction.
//
// An engine that has begun with the copies of a stream stays with that stream until it has none left, whatever the
// priorities of streams: on an H200 the copy of a 256 x 256 product waited 42 ms, for all operands of a 16384 cubed one
// that was under way. So while short calls are, others let their queue run dry after each burst.
#pragma once

#include <atomic>
#include <cstddef>

namespace fl::cuda {

// Up to here a call is short: beside a long one it waits for the kernel that runs and for a burst of copies, not for
// all that the long call has queued. Its own copies are no more than one burst.
constexpr std::size_t short_call = std::size_t(16) << 20;  // bytes

class CopyQueue {
 public:
  static constexpr std::size_t burst = short_call;  // bytes

  explicit CopyQueue(const std::atomic<int>& short_calls) : short_calls_(short_calls) {}

  bool admits() const { return bytes_ < burst || short_calls_.load(std::memory_order_relaxed) == 0; }
  void queued(std::size_t bytes) { bytes_ += bytes; }
  void ran_dry() { bytes_ = 0; }

 private:
  const std::atomic<int>& short_calls_;
  std::size_t bytes_ = 0;  // queued since it ran dry
};

}  // namespace fl::cuda
