#include "runtime/per_thread.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <utility>

namespace fl {
namespace {

void delete_block(void* block) {
  auto* const places = static_cast<ThreadBlock*>(block);
  for (OwnedByThread*& owned : *places) delete std::exchange(owned, nullptr);
  std::free(places);
}

// The C++ runtime's own part of a thread, without which nothing can be thrown there: the C library asks for it at the
// first exception, and ends the process where there is no memory. So it is asked for here, just after a larger block
// has been given back.
bool exceptions_have_memory() noexcept {
  void* volatile room = std::malloc(32768);  // four times what CUDA's runtime needs in the same place; volatile: kept
  if (!room) return false;
  std::free(room);
  [[maybe_unused]] const volatile int asked = std::uncaught_exceptions();
  return true;
}

}  // namespace

ThreadKey::ThreadKey() {
  if (pthread_key_create(&value, delete_block) != 0) std::abort();  // 1024 of a process are in use
}
ThreadKey::~ThreadKey() { pthread_key_delete(value); }
const ThreadKey thread_key;

std::size_t next_place() noexcept {
  static constinit std::atomic<std::size_t> next{0};
  const std::size_t place = next++;
  if (place >= ThreadBlock().size()) std::abort();  // when the library is loaded: a type was added without a place
  return place;
}

ThreadBlock* new_thread_block() noexcept {
  auto* const block = static_cast<ThreadBlock*>(std::calloc(1, sizeof(ThreadBlock)));  // new would throw within
  if (!block || (exceptions_have_memory() && pthread_setspecific(thread_key.value, block) == 0)) return block;
  std::free(block);
  return nullptr;
}

}  // namespace fl
