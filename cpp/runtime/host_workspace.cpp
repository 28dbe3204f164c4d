#include "runtime/host_workspace.h"

#include <atomic>

#include "core/errors.h"
#include "core/text.h"
#include "runtime/huge_pages.h"

namespace fl {
namespace {

// Packed operands are read over and over: with 4 KiB pages address translation is 5 to 10 % of an SGEMM, so huge ones.
constexpr std::size_t most_in_workspaces = std::size_t(256) << 20;  // bytes in all cached blocks together

// A cached block carries its size in its first bytes: a single word per place can then be exchanged.
struct CachedWorkspace {
  std::size_t capacity;
};
std::atomic<CachedWorkspace*> workspaces[8];
std::atomic<std::size_t> bytes_in_workspaces{0};

CachedWorkspace* take(std::atomic<CachedWorkspace*>& place) {
  CachedWorkspace* const cached = place.exchange(nullptr, std::memory_order_acquire);
  if (cached) bytes_in_workspaces.fetch_sub(cached->capacity, std::memory_order_relaxed);
  return cached;
}

const KeptBlocks kept_workspaces([]() noexcept {
  for (auto& place : workspaces)
    if (CachedWorkspace* const cached = take(place)) unmap_huge_pages(cached, cached->capacity);
});

}  // namespace

HostWorkspace::HostWorkspace(std::size_t bytes) {
  if (bytes == 0) return;
  for (auto& place : workspaces) {
    CachedWorkspace* const cached = take(place);
    if (!cached) continue;
    if (cached->capacity >= bytes) {
      block_ = cached;
      capacity_ = cached->capacity;
      return;
    }
    unmap_huge_pages(cached, cached->capacity);  // too small: a larger one takes its place when this call ends
  }
  capacity_ = (bytes + huge_page - 1) / huge_page * huge_page;
  block_ = capacity_ < bytes ? nullptr : map_huge_pages(capacity_);
  if (!block_) throw OutOfMemory("could not allocate " + bytes_text(bytes) + " of host workspace");
}

HostWorkspace::~HostWorkspace() {
  if (!block_) return;
  if (bytes_in_workspaces.fetch_add(capacity_, std::memory_order_relaxed) + capacity_ <= most_in_workspaces) {
    CachedWorkspace* const cached = static_cast<CachedWorkspace*>(block_);
    cached->capacity = capacity_;
    for (auto& place : workspaces) {
      CachedWorkspace* expected = nullptr;
      if (place.compare_exchange_strong(expected, cached, std::memory_order_release)) return;
    }
  }
  bytes_in_workspaces.fetch_sub(capacity_, std::memory_order_relaxed);
  unmap_huge_pages(block_, capacity_);
}

}  // namespace fl
