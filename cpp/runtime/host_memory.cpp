#include "runtime/host_memory.h"

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

// Blocks of calls that have ended, for later ones. No lock: another thread could hold it at the moment of a fork. A
// block carries its size in its first bytes, so that a place is a single word.
//
// Wanted::same: a call takes blocks of its own size alone, which is the one in use: where one does not fit in, the
// others go. Wanted::larger: it takes the first that is large enough, and what is too small goes: a larger one has its
// place when the call ends.
enum class Wanted { same, larger };
template <std::size_t PLACES, Wanted WANTED>
class BlockCache {
 public:
  struct Block {
    std::size_t capacity;
  };

  Block* take(std::size_t bytes) noexcept {  // or null
    for (auto& place : places_) {
      if (!place.load(std::memory_order_relaxed)) continue;
      Block* const block = place.exchange(nullptr, std::memory_order_acq_rel);
      if (!block) continue;
      if (SAME ? block->capacity == bytes : block->capacity >= bytes) {
        bytes_.fetch_sub(block->capacity, std::memory_order_relaxed);
        return block;
      }
      if (!SAME || !put(block)) give_back(block, block->capacity);
    }
    return nullptr;
  }
  // Of at most `most` bytes in all, and of as many blocks as there are places.
  void keep(void* memory, std::size_t capacity, std::size_t most) noexcept {
    Block* const block = static_cast<Block*>(memory);
    block->capacity = capacity;
    const bool fits = bytes_.fetch_add(capacity, std::memory_order_relaxed) + capacity <= most;
    if (!fits && SAME) trim();
    if ((!fits && !SAME) || !put(block)) give_back(block, capacity);
  }
  void trim() noexcept {
    for (auto& place : places_)
      if (Block* const block = place.exchange(nullptr, std::memory_order_acq_rel)) give_back(block, block->capacity);
  }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr bool SAME = WANTED == Wanted::same;

  bool put(Block* block) {
    for (auto& place : places_) {
      Block* expected = nullptr;
      if (place.compare_exchange_strong(expected, block, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  void give_back(Block* block, std::size_t capacity) noexcept {
    bytes_.fetch_sub(capacity, std::memory_order_relaxed);
    unmap_huge_pages(block, capacity);
  }

  std::atomic<Block*> places_[PLACES] = {};
  std::atomic<std::size_t> bytes_{0};
};

// ---------------------------------------------------------------- workspaces
// Packed operands are read over and over: with 4 KiB pages address translation is 5 to 10 % of an SGEMM, so huge ones.
constexpr std::size_t most_in_workspaces = std::size_t(256) << 20;  // bytes in all cached blocks together

constinit BlockCache<8, Wanted::larger> workspaces;
const KeptBlocks kept_workspaces([]() noexcept { workspaces.trim(); });

}  // namespace

HostWorkspace::HostWorkspace(std::size_t bytes) {
  if (bytes == 0) return;
  if (auto* const cached = workspaces.take(bytes)) {
    capacity_ = cached->capacity;
    block_ = cached;
    return;
  }
  capacity_ = whole_huge_pages(bytes);
  block_ = capacity_ < bytes ? nullptr : map_huge_pages(capacity_);
  if (!block_) throw OutOfMemory("could not allocate " + bytes_text(bytes) + " of host workspace");
}

HostWorkspace::~HostWorkspace() {
  if (block_) workspaces.keep(block_, capacity_, most_in_workspaces);
}

// ---------------------------------------------------------------- results
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

constinit BlockCache<64, Wanted::same> results;
const KeptBlocks kept_blocks([]() noexcept { results.trim(); });

// The system may take the pages back as soon as it needs memory, and until then they are as they were: to say so takes
// 0.5 ms for 1 GiB. Not the first one, where the cache notes the capacity.
void offer_to_system(const ResultBlock& block) {
#ifdef MADV_FREE
  if (block.capacity > huge_page)
    ::madvise(static_cast<char*>(block.data) + huge_page, block.capacity - huge_page, MADV_FREE);
#else
  static_cast<void>(block);
#endif
}

}  // namespace

ResultBlock take_result_block(std::size_t bytes) {
  const std::size_t capacity = whole_huge_pages(bytes);
  ResultBlock block;
  if (capacity >= bytes && capacity <= most_cached()) block = {results.take(capacity), capacity};
  if (!block.data && capacity >= bytes) block = {map_huge_pages(capacity), capacity};
  if (!block.data) throw OutOfMemory("could not allocate " + bytes_text(bytes) + " for the result");
  return block;
}

void assume_memory_size(std::size_t bytes) { known.store(bytes ? bound(bytes) : 0, std::memory_order_relaxed); }

KeptResults kept_results() noexcept { return {results.bytes(), most_cached()}; }

void free_result_block(ResultBlock block) noexcept {
  if (block.capacity > most_cached()) return unmap_huge_pages(block.data, block.capacity);
  offer_to_system(block);
  results.keep(block.data, block.capacity, most_cached());
}

}  // namespace fl
