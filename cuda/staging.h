// Pinned host memory through which ordinary host memory travels: the driver copies from and to it at the speed of the
// link, and without blocking the calling thread.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

namespace fl::cuda {

struct Chunk {
  void* data = nullptr;
  cudaEvent_t copied = nullptr;  // recorded after the last copy from or to the chunk
};

// The chunks of one call: at most `slots`, taken from the free chunks of the device as they are needed.
class StagingRing {
 public:
  static constexpr std::size_t chunk_bytes = std::size_t(1) << 20;
  static constexpr int slots = 8;

  explicit StagingRing(int device) : device_(device) {}
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // The chunk used longest ago, or a new one while there are slots left. Waits until its last copy is done.
  Chunk& next();

 private:
  int device_;
  int cursor_ = 0;
  std::array<Chunk, slots> chunks_;
};

void trim_staging(int device);  // frees the chunks that no call uses
std::size_t pinned_bytes(int device);

}  // namespace fl::cuda
