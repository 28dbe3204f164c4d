// What a child of fork must not share with its parent: locks, which a thread may hold that the child does not have, and
// what they guard, which that thread may have left half changed.
#pragma once

#include <atomic>
#include <new>

#include "core/export.h"

namespace fl {

FL_EXPORT unsigned
fork_generation() noexcept;  // how many forks lie between the process that loaded this library and us

// One T for each process. A child gets a fresh one at its first use, and never touches that of its parent.
template <class T>
class PerProcess {
 public:
  // Null if there is no memory.
  T* try_get() noexcept {
    Owned* there = owned_.load(std::memory_order_acquire);
    if (there && there->generation == fork_generation()) return &there->value;
    Owned* const fresh = new (std::nothrow) Owned;
    if (fresh && !owned_.compare_exchange_strong(there, fresh, std::memory_order_acq_rel)) {
      delete fresh;
      return &there->value;
    }
    return fresh ? &fresh->value : nullptr;
  }
  T& get() {
    T* const value = try_get();
    if (!value) throw std::bad_alloc();
    return *value;
  }

  // There is no destructor: what is static serves threads that outlive static destructors.
  void free() noexcept {
    Owned* const there = owned_.exchange(nullptr);
    if (there && there->generation == fork_generation()) delete there;
  }

 private:
  struct Owned {
    const unsigned generation = fork_generation();
    T value;
  };
  std::atomic<Owned*> owned_{nullptr};
};

}  // namespace fl
