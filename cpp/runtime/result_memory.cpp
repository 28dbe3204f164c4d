#include "runtime/result_memory.h"

#include <atomic>
#include <string>

#include "core/errors.h"
#include "runtime/huge_pages.h"

namespace fl {
namespace {

constexpr std::size_t most_kept = std::size_t(256) << 20;

// No lock: one could be held by another thread at the moment of a fork. A kept block carries its size in its first
// bytes, so that a place is a single word.
struct Kept {
  std::size_t capacity;
};
std::atomic<Kept*> places[64];
std::atomic<std::size_t> kept_bytes{0};

// False if every place is taken.
bool keep(Kept* block) {
  for (auto& place : places) {
    Kept* expected = nullptr;
    if (place.compare_exchange_strong(expected, block, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void unmap(Kept* block, std::size_t capacity) {
  kept_bytes.fetch_sub(capacity, std::memory_order_relaxed);
  unmap_huge_pages(block, capacity);
}

ResultBlock take_kept(std::size_t capacity) {
  for (auto& place : places) {
    if (!place.load(std::memory_order_relaxed)) continue;
    Kept* const block = place.exchange(nullptr, std::memory_order_acq_rel);
    if (!block) continue;
    if (block->capacity == capacity) {
      kept_bytes.fetch_sub(capacity, std::memory_order_relaxed);
      return {block, capacity};
    }
    if (!keep(block)) unmap(block, block->capacity);
  }
  return {};
}

}  // namespace

ResultBlock take_result_block(std::size_t bytes) {
  const std::size_t capacity = (bytes + huge_page - 1) / huge_page * huge_page;
  ResultBlock block;
  if (capacity >= bytes && capacity <= most_kept) block = take_kept(capacity);
  if (!block.data && capacity >= bytes) block = {map_huge_pages(capacity), capacity};
  if (!block.data) throw OutOfMemory("could not allocate " + std::to_string(bytes) + " bytes for the result");
  return block;
}

void trim_result_memory() noexcept {
  for (auto& place : places)
    if (Kept* const block = place.exchange(nullptr, std::memory_order_acq_rel)) unmap(block, block->capacity);
}

// Where there is no room, the others give way: this size is the one in use.
void free_result_block(ResultBlock block) noexcept {
  if (block.capacity > most_kept) return unmap_huge_pages(block.data, block.capacity);
  Kept* const kept = static_cast<Kept*>(block.data);
  kept->capacity = block.capacity;
  const std::size_t before = kept_bytes.fetch_add(block.capacity, std::memory_order_relaxed);
  if (before + block.capacity > most_kept) trim_result_memory();
  if (!keep(kept)) unmap(kept, block.capacity);
}

}  // namespace fl
