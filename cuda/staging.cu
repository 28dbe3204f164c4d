#include "staging.h"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "check.h"
#include "device_guard.h"
#include "errors.h"
#include "per_device.h"

namespace fl::cuda {
namespace {

constexpr std::size_t kept_chunks = 64;  // 64 MiB stay pinned after a burst of calls

struct FreeChunks {
  FreeChunks() { idle.reserve(kept_chunks); }  // so that giving a chunk back cannot fail
  std::mutex mutex;                            // guards idle; never held during a CUDA call
  std::vector<Chunk> idle;
  std::atomic<std::size_t> pinned{0};
};

void destroy(FreeChunks& chunks, const Chunk& chunk) noexcept {
  ignore_errors(cudaEventSynchronize(chunk.copied));
  ignore_errors(cudaEventDestroy(chunk.copied));
  ignore_errors(cudaFreeHost(chunk.data));
  chunks.pinned -= StagingRing::chunk_bytes;
}

Chunk create(FreeChunks& chunks) {
  const AllowDuringCapture allow;
  Chunk chunk;
  const cudaError_t error = cudaHostAlloc(&chunk.data, StagingRing::chunk_bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw OutOfMemory("could not get " + std::to_string(StagingRing::chunk_bytes) + " bytes of pinned host memory; " +
                      std::to_string(chunks.pinned) + " bytes are in use by fastlinalg");
  }
  if (error != cudaSuccess) fail(error, "cudaHostAlloc", __FILE__, __LINE__);
  if (const cudaError_t event = cudaEventCreateWithFlags(&chunk.copied, cudaEventDisableTiming); event != cudaSuccess) {
    ignore_errors(cudaFreeHost(chunk.data));
    fail(event, "cudaEventCreateWithFlags", __FILE__, __LINE__);
  }
  chunks.pinned += StagingRing::chunk_bytes;
  return chunk;
}

Chunk take(FreeChunks& chunks) {
  {
    const std::lock_guard lock(chunks.mutex);
    if (!chunks.idle.empty()) {
      const Chunk chunk = chunks.idle.back();
      chunks.idle.pop_back();
      return chunk;
    }
  }
  return create(chunks);
}

void give_back(FreeChunks& chunks, const Chunk& chunk) noexcept {
  {
    const std::lock_guard lock(chunks.mutex);
    if (chunks.idle.size() < kept_chunks) {
      chunks.idle.push_back(chunk);
      return;
    }
  }
  destroy(chunks, chunk);
}

}  // namespace

Chunk& StagingRing::next() {
  Chunk& chunk = chunks_[std::size_t(cursor_)];
  cursor_ = (cursor_ + 1) % slots;
  if (!chunk.data) chunk = take(per_device<FreeChunks>(device_));
  FL_CUDA(cudaEventSynchronize(chunk.copied));
  return chunk;
}

StagingRing::~StagingRing() {
  for (const Chunk& chunk : chunks_)
    if (chunk.data) give_back(per_device<FreeChunks>(device_), chunk);
}

void trim_staging(int device) {
  FreeChunks& chunks = per_device<FreeChunks>(device);
  std::vector<Chunk> unused;
  {
    const std::lock_guard lock(chunks.mutex);
    unused = chunks.idle;
    chunks.idle.clear();
  }
  for (const Chunk& chunk : unused) destroy(chunks, chunk);
}

std::size_t pinned_bytes(int device) { return per_device<FreeChunks>(device).pinned; }

}  // namespace fl::cuda
