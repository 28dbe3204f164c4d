// Large blocks of host memory on huge pages where the system has them.
#pragma once

#include <cstddef>

namespace fl {

constexpr std::size_t huge_page = std::size_t(2) << 20;

// `bytes` is a multiple of huge_page; the block begins at one, and nothing of it is resident yet. Null if there is no
// memory.
void* map_huge_pages(std::size_t bytes);
void unmap_huge_pages(void* block, std::size_t bytes);

}  // namespace fl
