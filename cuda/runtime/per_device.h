// State that exists once per device: a pool, streams, pinned chunks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

#include "device/device_info.h"

namespace fl::cuda {

// Call only after require_device(device). Never freed: at the end of the process the driver may be gone before the
// destructors of this library run, and destroying CUDA objects would then crash.
template <class State>
State& per_device(int device) {
  static State* const states = new State[std::size_t(device_count())];
  return states[device];
}

// CUDA objects that calls borrow. There are never more of them than calls needed at the same time.
template <class Handle>
class IdleHandles {
 public:
  // Moves as many as there are, up to `count`, and returns how many. The caller makes the rest, and gives all back.
  std::size_t take(Handle* to, std::size_t count) {
    const std::lock_guard lock(mutex_);
    const std::size_t found = std::min(count, idle_.size());
    std::copy(idle_.end() - std::ptrdiff_t(found), idle_.end(), to);
    idle_.resize(idle_.size() - found);
    idle_.reserve(created_ += count - found);  // room for all of them, so that giving one back cannot fail
    return found;
  }
  void give_back(const Handle* from, std::size_t count) noexcept {
    const std::lock_guard lock(mutex_);
    idle_.insert(idle_.end(), from, from + count);
  }

 private:
  std::mutex mutex_;  // guards what follows; never held during a CUDA call
  std::vector<Handle> idle_;
  std::size_t created_ = 0;
};

}  // namespace fl::cuda
