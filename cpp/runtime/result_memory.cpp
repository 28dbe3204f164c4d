#include "runtime/result_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/errors.h"
#include "core/text.h"
#include "runtime/cgroup.h"
#include "runtime/huge_pages.h"

namespace fl {
namespace {

// What this process may use.
std::size_t memory_size() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  std::size_t memory = pages > 0 && page > 0 ? std::size_t(pages) * std::size_t(page) : 0;
  if (const std::size_t limit = cgroup_limits().memory) memory = std::min(memory, limit);
  return memory;
}

// A 32nd of it, within limits.
std::size_t bound(std::size_t memory) {
  constexpr std::size_t least = std::size_t(256) << 20, most = std::size_t(4) << 30;
  return std::clamp(memory / 32 / huge_page * huge_page, least, most);
}

std::atomic<std::size_t> known{0};  // 0: not asked yet

std::size_t most_cached() {
  std::size_t bytes = known.load(std::memory_order_relaxed);
  if (!bytes) known.store(bytes = bound(memory_size()), std::memory_order_relaxed);
  return bytes;
}

// No lock: one could be held by another thread at the moment of a fork. A cached block carries its size in its first
// bytes, so that a place is a single word.
struct CachedBlock {
  std::size_t capacity;
};
std::atomic<CachedBlock*> places[64];
std::atomic<std::size_t> cached_bytes{0};

// False if every place is taken.
bool keep(CachedBlock* block) {
  for (auto& place : places) {
    CachedBlock* expected = nullptr;
    if (place.compare_exchange_strong(expected, block, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void unmap(CachedBlock* block, std::size_t capacity) {
  cached_bytes.fetch_sub(capacity, std::memory_order_relaxed);
  unmap_huge_pages(block, capacity);
}

void trim() noexcept {
  for (auto& place : places)
    if (CachedBlock* const block = place.exchange(nullptr, std::memory_order_acq_rel)) unmap(block, block->capacity);
}
const KeptBlocks kept_blocks(trim);

ResultBlock take_cached(std::size_t capacity) {
  for (auto& place : places) {
    if (!place.load(std::memory_order_relaxed)) continue;
    CachedBlock* const block = place.exchange(nullptr, std::memory_order_acq_rel);
    if (!block) continue;
    if (block->capacity == capacity) {
      cached_bytes.fetch_sub(capacity, std::memory_order_relaxed);
      return {block, capacity};
    }
    if (!keep(block)) unmap(block, block->capacity);
  }
  return {};
}

// The system may take the pages back as soon as it needs memory, and until then they are as they were: to say so takes
// 0.5 ms for 1 GiB. Not the first one, where the capacity stands.
void offer_to_system(CachedBlock* block, std::size_t capacity) {
#ifdef MADV_FREE
  if (capacity > huge_page) ::madvise(reinterpret_cast<char*>(block) + huge_page, capacity - huge_page, MADV_FREE);
#else
  static_cast<void>(block), static_cast<void>(capacity);
#endif
}

}  // namespace

ResultBlock take_result_block(std::size_t bytes) {
  const std::size_t capacity = (bytes + huge_page - 1) / huge_page * huge_page;
  ResultBlock block;
  if (capacity >= bytes && capacity <= most_cached()) block = take_cached(capacity);
  if (!block.data && capacity >= bytes) block = {map_huge_pages(capacity), capacity};
  if (!block.data) throw OutOfMemory("could not allocate " + bytes_text(bytes) + " for the result");
  return block;
}

void assume_memory_size(std::size_t bytes) { known.store(bytes ? bound(bytes) : 0, std::memory_order_relaxed); }

KeptResults kept_results() noexcept { return {cached_bytes.load(std::memory_order_relaxed), most_cached()}; }

// Where there is no room, the others give way: this size is the one in use.
void free_result_block(ResultBlock block) noexcept {
  if (block.capacity > most_cached()) return unmap_huge_pages(block.data, block.capacity);
  CachedBlock* const cached = static_cast<CachedBlock*>(block.data);
  cached->capacity = block.capacity;
  offer_to_system(cached, block.capacity);
  const std::size_t before = cached_bytes.fetch_add(block.capacity, std::memory_order_relaxed);
  if (before + block.capacity > most_cached()) trim();
  if (!keep(cached)) unmap(cached, block.capacity);
}

}  // namespace fl
