// Pinned host memory through which ordinary host memory travels: the driver copies from and to it at the speed of the
// link, and without blocking the calling thread.
#pragma once

#include <cstddef>
#include <vector>

namespace fl::cuda {

// The pinned blocks of one call, from those that the device keeps. Calls that run at the same time share what is
// allowed in all. Each gets fewer blocks then; it waits, in the order of the calls, if there are none, or for two calls
// of about its length or more that are under way. Throws OutOfMemory if there is no memory for the fewest that the call
// can work with.
class PinnedBlocks {
 public:
  static constexpr std::size_t block_bytes = std::size_t(8) << 20;
  static constexpr int most_in_all = 32;  // blocks of a device: 256 MiB

  PinnedBlocks(int device, int wanted, int fewest);
  ~PinnedBlocks();
  PinnedBlocks(const PinnedBlocks&) = delete;
  PinnedBlocks& operator=(const PinnedBlocks&) = delete;

  int count() const { return int(blocks_.size()); }
  char* operator[](int i) const { return blocks_[std::size_t(i)]; }

 private:
  int device_, wanted_;
  std::vector<char*> blocks_;
};

// Slots of one size in some of a call's blocks, used in turn.
class Ring {
 public:
  Ring(const PinnedBlocks& blocks, int first, int count, std::size_t slot_bytes)
      : blocks_(blocks),
        first_(first),
        per_block_(int(PinnedBlocks::block_bytes / slot_bytes)),
        slot_bytes_(slot_bytes),
        slots_(count * per_block_) {}
  int slots() const { return slots_; }
  float* operator[](std::size_t use) const {
    const int slot = int(use % std::size_t(slots_));
    return reinterpret_cast<float*>(blocks_[first_ + slot / per_block_] + std::size_t(slot % per_block_) * slot_bytes_);
  }

 private:
  const PinnedBlocks& blocks_;
  int first_, per_block_;
  std::size_t slot_bytes_;
  int slots_;
};

void trim_pinned(int device);  // frees the blocks that no call uses
std::size_t pinned_bytes(int device);
int other_devices_in_use(int device);  // by calls that have blocks

}  // namespace fl::cuda
