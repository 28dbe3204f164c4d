#include "runtime/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace fl {
namespace {

constinit const KeptBlocks* first_kept = nullptr;

void* map(std::size_t bytes) {
  // One page more than needed, so that an aligned stretch is in it; the ends go back at once.
  const std::size_t all = bytes + huge_page;
  if (bytes == 0 || all < bytes) return nullptr;
  void* const raw = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(raw), aligned = whole_huge_pages(begin);
  if (aligned > begin) ::munmap(raw, aligned - begin);
  if (aligned + bytes < begin + all) ::munmap(reinterpret_cast<void*>(aligned + bytes), begin + all - aligned - bytes);
#ifdef MADV_HUGEPAGE
  ::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(aligned);
}

}  // namespace

KeptBlocks::KeptBlocks(void (*how)() noexcept) : give_back(how), next(first_kept) { first_kept = this; }

void trim_kept_memory() noexcept {
  for (const KeptBlocks* kept = first_kept; kept; kept = kept->next) kept->give_back();
}

void* map_huge_pages(std::size_t bytes) noexcept {
  if (void* const block = map(bytes)) return block;
  trim_kept_memory();
  return map(bytes);
}

void unmap_huge_pages(void* block, std::size_t bytes) noexcept { ::munmap(block, bytes); }

}  // namespace fl
