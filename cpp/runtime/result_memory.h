// Memory of large results that the library makes: huge pages, and blocks that are handed out again.
#pragma once

#include <cstddef>

#include "core/export.h"

namespace fl {

// Faulting in a 2 MiB page takes 0.22 ms, as long as a 1024 x 1024 product from and to host memory, and giving 1 GiB
// back takes 2 ms. So freed blocks are kept, 256 MiB of them in all. Of NumPy results on an H200 host a fresh one took
// 3.40 ms at n = 4096 where a touched one took 3.04, and 12.7 where it took 11.8 at 8192: keeping no block of more than
// 32 MiB, as at first, was not worth it.
struct ResultBlock {
  void* data = nullptr;
  std::size_t capacity = 0;
};
FL_EXPORT ResultBlock take_result_block(std::size_t bytes);  // throws OutOfMemory
FL_EXPORT void free_result_block(ResultBlock block) noexcept;

FL_EXPORT void trim_result_memory() noexcept;  // gives the kept blocks back

// Below this the C library's own memory serves.
constexpr std::size_t smallest_result_block = std::size_t(2) << 20;

}  // namespace fl
