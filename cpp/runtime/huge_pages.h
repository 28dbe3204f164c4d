// Large blocks of host memory on huge pages where the system has them. What is kept of them for later calls gives way
// where memory runs out.
#pragma once

#include <cstddef>

#include "core/export.h"

namespace fl {

constexpr std::size_t huge_page = std::size_t(2) << 20;
// The next multiple of it; less than `bytes` where there is none.
constexpr std::size_t whole_huge_pages(std::size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

// `bytes` is a multiple of huge_page; the block begins at one, and nothing of it is resident yet. Null if there is no
// memory, even when all that is kept has been given back.
void* map_huge_pages(std::size_t bytes) noexcept;
void unmap_huge_pages(void* block, std::size_t bytes) noexcept;

// Who keeps blocks says how to give them back, as a static object.
struct KeptBlocks {
  explicit KeptBlocks(void (*give_back)() noexcept);
  void (*give_back)() noexcept;
  const KeptBlocks* next;
};
FL_EXPORT void trim_kept_memory() noexcept;  // gives back all that is kept

}  // namespace fl
