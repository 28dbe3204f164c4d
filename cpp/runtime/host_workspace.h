// Scratch memory of the CPU kernels: huge pages, cached between calls.
#pragma once

#include <cstddef>

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

}  // namespace fl
