// Host memory on huge pages that is kept between calls: scratch memory of the CPU kernels, and large results that the
// library makes.
#pragma once

#include <cstddef>

#include "core/export.h"

namespace fl {

// One block for the duration of a call. Throws OutOfMemory. Blocks of finished calls are cached for later ones, up to a
// fixed total; callers on several threads get different blocks, and no lock is taken (a forked child could find it
// held).
class HostWorkspace {
 public:
  explicit HostWorkspace(std::size_t bytes);  // 0: nothing
  ~HostWorkspace();
  HostWorkspace(const HostWorkspace&) = delete;
  HostWorkspace& operator=(const HostWorkspace&) = delete;
  void* data() const { return block_; }

 private:
  void* block_ = nullptr;  // 2 MiB aligned
  std::size_t capacity_ = 0;
};

// Faulting in a 2 MiB page takes 0.22 ms, as long as a 1024 x 1024 product from and to host memory, and giving 1 GiB
// back takes 2 ms. So freed blocks are cached, up to a 32nd of the memory (256 MiB to 4 GiB) in all; the system
// may have their pages back when it runs short. Of NumPy results on an H200 host a fresh one took 3.40 ms at n = 4096
// where a touched one took 3.04, and 12.7 where it took 11.8 at 8192.
struct ResultBlock {
  void* data = nullptr;
  std::size_t capacity = 0;
};
FL_EXPORT ResultBlock take_result_block(std::size_t bytes);  // throws OutOfMemory
FL_EXPORT void free_result_block(ResultBlock block) noexcept;

struct KeptResults {
  std::size_t bytes, most;
};
FL_EXPORT KeptResults kept_results() noexcept;
FL_EXPORT void assume_memory_size(std::size_t bytes);  // for the tests; 0: as the system tells

// Below this the C library's own memory serves.
constexpr std::size_t smallest_result_block = std::size_t(2) << 20;

}  // namespace fl
