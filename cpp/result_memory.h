// Memory of large results that the library makes: huge pages, and blocks that are handed out again.
#pragma once

#include <cstddef>

#include "export.h"

namespace fl {

// Faulting in a 2 MiB page takes 0.22 ms, as long as a 1024 x 1024 product from and to host memory. So blocks of up to
// 32 MiB are kept when they are freed, 256 MiB of them in all. Larger ones are fresh each time: their pages are faulted in
// beside everything else, or by the threads that write them.
struct ResultBlock {
  void* data = nullptr;
  std::size_t capacity = 0;
};
FL_EXPORT ResultBlock take_result_block(std::size_t bytes);  // throws OutOfMemory
FL_EXPORT void free_result_block(ResultBlock block) noexcept;

// Below this the C library's own memory serves.
constexpr std::size_t smallest_result_block = std::size_t(2) << 20;

}  // namespace fl
