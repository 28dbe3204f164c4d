// How much shared memory a block asks for so that the blocks of a launch come to all multiprocessors alike.
#pragma once

#include <algorithm>

#include "cuda/kernels/common/launch.cuh"

namespace fl {

// Blocks of the next kernel begin while the last ones of this one end, and land where there is room: two of them on a
// multiprocessor and none on another, which took 45 instead of 33 us for 216 x 3902 x 499 in 64 x 128 tiles. So there
// is room for as many as come to each, or for all that fit where that is no constraint.
template <class T>
int room_for(unsigned blocks, const Context& ctx) {
  const auto multiprocessors = static_cast<unsigned>(ctx.sm_count);
  const int shared = static_cast<int>(ctx.device->shared_per_sm);
  const int each = static_cast<int>((blocks + multiprocessors - 1) / multiprocessors);
  if (blocks <= multiprocessors / 2 || each >= T::BLOCKS) return T::SHARED_BYTES;
  return std::max(T::SHARED_BYTES, shared / (each + 1) - 768);
}

template <class T>
LaunchShape with_room(unsigned blocks, const Context& ctx) {
  return {.blocks = blocks,
          .threads = T::THREADS,
          .shared_bytes = room_for<T>(blocks, ctx),
          .most_shared_bytes = std::max(T::SHARED_BYTES, static_cast<int>(ctx.device->shared_per_sm) / 2)};
}

}  // namespace fl
