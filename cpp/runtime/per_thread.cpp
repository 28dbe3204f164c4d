#include "runtime/per_thread.h"

#include <atomic>
#include <cstdlib>
#include <utility>

namespace fl {
namespace {

void delete_block(void* block) {
  auto* const places = static_cast<ThreadBlock*>(block);
  for (OwnedByThread*& owned : *places) delete std::exchange(owned, nullptr);
  delete places;
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
  auto* const block = new (std::nothrow) ThreadBlock{};
  if (!block || pthread_setspecific(thread_key.value, block) == 0) return block;
  delete block;
  return nullptr;
}

}  // namespace fl
