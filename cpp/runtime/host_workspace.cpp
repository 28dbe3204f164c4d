#include "runtime/host_workspace.h"

#include <atomic>
#include <string>

#include "core/errors.h"
#include "runtime/huge_pages.h"

namespace fl {
namespace {

// Packed operands are read over and over: with 4 KiB pages address translation is 5 to 10 % of an SGEMM, so huge ones.
constexpr std::size_t most_kept = std::size_t(256) << 20;  // bytes in all kept blocks together

// A kept block carries its size in its first bytes: a single word per place can then be exchanged.
struct Kept {
  std::size_t capacity;
};
std::atomic<Kept*> places[8];
std::atomic<std::size_t> kept_bytes{0};

}  // namespace

HostWorkspace::HostWorkspace(std::size_t bytes) {
  if (bytes == 0) return;
  for (auto& place : places) {
    Kept* const kept = place.exchange(nullptr, std::memory_order_acquire);
    if (!kept) continue;
    kept_bytes.fetch_sub(kept->capacity, std::memory_order_relaxed);
    if (kept->capacity >= bytes) {
      block_ = kept;
      capacity_ = kept->capacity;
      return;
    }
    unmap_huge_pages(kept, kept->capacity);  // too small: a larger one takes its place when this call ends
  }
  capacity_ = (bytes + huge_page - 1) / huge_page * huge_page;
  block_ = capacity_ < bytes ? nullptr : map_huge_pages(capacity_);
  if (!block_) throw OutOfMemory("could not allocate " + std::to_string(bytes) + " bytes of host workspace");
}

HostWorkspace::~HostWorkspace() {
  if (!block_) return;
  if (kept_bytes.fetch_add(capacity_, std::memory_order_relaxed) + capacity_ <= most_kept) {
    Kept* const kept = static_cast<Kept*>(block_);
    kept->capacity = capacity_;
    for (auto& place : places) {
      Kept* expected = nullptr;
      if (place.compare_exchange_strong(expected, kept, std::memory_order_release)) return;
    }
  }
  kept_bytes.fetch_sub(capacity_, std::memory_order_relaxed);
  unmap_huge_pages(block_, capacity_);
}

}  // namespace fl
