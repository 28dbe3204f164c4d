// What each thread has of its own, in memory that is asked for at its first use.
//
// Objects that are thread_local lie, in a library that is loaded while the process runs, in memory that the C library
// asks for when a thread first touches one of them: all at once, CUDA's runtime's 8 KiB among them. Where there is none
// it ends the process. A key of the thread's needs no memory, and a call goes on without what its block would hold. A
// block comes with the memory that an exception needs of its thread: without one nothing may be thrown there.
#pragma once

#include <pthread.h>

#include <array>
#include <new>
#include <optional>
#include <utility>

#include "core/export.h"

namespace fl {

struct OwnedByThread {
  virtual ~OwnedByThread() = default;
};
using ThreadBlock = std::array<OwnedByThread*, 40>;

// Of the one block of each thread: deleted, with what it owns, when the thread ends.
struct ThreadKey {
  ThreadKey();
  ~ThreadKey();
  pthread_key_t value{};
};
extern FL_EXPORT const ThreadKey thread_key;

FL_EXPORT std::size_t next_place() noexcept;         // in the blocks, for another type
FL_EXPORT ThreadBlock* new_thread_block() noexcept;  // null: no memory

inline bool has_thread_block() noexcept { return pthread_getspecific(thread_key.value) || new_thread_block(); }

// This thread's T, made at first use; null if there is no memory for it. Each type T is there once.
template <class T>
class PerThread {
 public:
  static T* get() noexcept {
    auto* const block = static_cast<ThreadBlock*>(pthread_getspecific(thread_key.value));
    auto* const owned = block ? static_cast<Owned*>((*block)[place]) : nullptr;
    return owned ? &owned->value : make(block);
  }

 private:
  struct Owned : OwnedByThread {
    T value{};
  };
  [[gnu::noinline, gnu::cold]] static T* make(ThreadBlock* block) noexcept {
    if (!block) block = new_thread_block();
    auto* const owned = block ? new (std::nothrow) Owned : nullptr;
    if (!owned) return nullptr;
    (*block)[place] = owned;
    return &owned->value;
  }
  inline static const std::size_t place = next_place();
};

template <class T>
T* per_thread() noexcept {
  return PerThread<T>::get();
}

// Whether this thread has asked with another value the last time; each `About` is asked by itself.
template <class About, class T>
bool is_new_to_thread(const T& now) {
  struct Last {
    std::optional<T> value;
  };
  Last* const last = per_thread<Last>();
  return !last || std::exchange(last->value, now) != now;
}

}  // namespace fl
