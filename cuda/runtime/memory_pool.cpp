#include "cuda/runtime/memory_pool.h"

#include <atomic>
#include <mutex>

#include "core/errors.h"
#include "core/text.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"
#include "cuda/runtime/ring.h"
#include "device/device_info.h"
#include "device/device_memory.h"

namespace fl::cuda {
namespace {

struct Pool {
  std::once_flag once;
  cudaMemPool_t handle = nullptr;
  std::atomic<std::size_t> used{0};
  std::atomic<std::size_t> limit{0};
  std::atomic<uint64_t> open_to{0};  // other devices, a bit each
};

// Freed blocks stay with the pool. Under a limit it gives back what exceeds the limit whenever the driver synchronises.
void set_release_threshold(cudaMemPool_t pool, std::size_t limit) {
  cuuint64_t threshold = limit ? limit : UINT64_MAX;
  FL_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

cudaMemPool_t create_pool(int device, std::size_t limit) {
  const AllowDuringCapture allow;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  FL_CUDA(cudaMemPoolCreate(&pool, &properties));
  try {
    set_release_threshold(pool, limit);
  } catch (...) {
    ignore_errors(cudaMemPoolDestroy(pool));
    throw;
  }
  return pool;
}

Pool& pool_of(int device) {
  Pool& pool = per_device<Pool>(device);
  std::call_once(pool.once, [&] { pool.handle = create_pool(device, pool.limit); });
  return pool;
}

// `bytes` are counted in pool.used already.
[[noreturn]] void out_of_memory(int device, const Pool& pool, std::size_t bytes) {
  std::string message = "cuda:" + std::to_string(device) + " is out of memory: " + bytes_text(bytes) + " asked for, " +
                        size_text(pool.used - bytes) + " in use by fastlinalg";
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess)
    message += ", " + size_text(free) + " of " + size_text(total) + " free";
  static_cast<void>(cudaGetLastError());
  throw OutOfMemory(message);
}

[[noreturn]] void over_the_limit(int device, std::size_t used, std::size_t limit, std::size_t bytes) {
  throw OutOfMemory("the memory limit of cuda:" + std::to_string(device) + " is reached: " + bytes_text(bytes) +
                    " asked for, " + size_text(used) + " in use by fastlinalg, limit " + size_text(limit));
}

// Counts the bytes before they are allocated, so that threads that allocate at once cannot pass the limit together.
void count(int device, Pool& pool, std::size_t bytes) {
  std::size_t used = pool.used;
  do {
    const std::size_t limit = pool.limit;
    if (limit && (used > limit || bytes > limit - used)) over_the_limit(device, used, limit, bytes);
  } while (!pool.used.compare_exchange_weak(used, used + bytes));
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone;
}

// Blocks that were freed on any stream can be reused by all only once the device has come past the point of their
// freeing.
void give_back_unused(cudaMemPool_t pool, int device) {
  FL_CUDA(cudaDeviceSynchronize());
  FL_CUDA(cudaMemPoolTrimTo(pool, 0));
  trim_pinned(device);
}

void* allocate(int device, Pool& pool, std::size_t bytes, cudaStream_t stream) {
  if (bytes > device_info(device).memory) out_of_memory(device, pool, bytes);
  void* data = nullptr;
  cudaError_t error = cudaMallocFromPoolAsync(&data, bytes, pool.handle, stream);
  if (error == cudaErrorMemoryAllocation && !is_capturing(stream)) {
    static_cast<void>(cudaGetLastError());
    give_back_unused(pool.handle, device);
    error = cudaMallocFromPoolAsync(&data, bytes, pool.handle, stream);
  }
  if (error == cudaErrorMemoryAllocation) out_of_memory(device, pool, bytes);
  if (error != cudaSuccess) fail(error, "cudaMallocFromPoolAsync", __FILE__, __LINE__);
  return data;
}

// Lets the other device read and write what the pool of this one has and will have.
bool open_to(int device, int other) {
  Pool& pool = pool_of(device);
  const uint64_t bit = uint64_t(1) << other;
  if (pool.open_to & bit) return true;
  int possible = 0;
  FL_CUDA(cudaDeviceCanAccessPeer(&possible, other, device));
  if (!possible) return false;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = other;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  FL_CUDA(cudaMemPoolSetAccess(pool.handle, &access, 1));
  pool.open_to |= bit;
  return true;
}

}  // namespace

void* pool_allocate(int device, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  Pool& pool = pool_of(device);
  count(device, pool, bytes);
  try {
    return allocate(device, pool, bytes, stream);
  } catch (...) {
    pool.used -= bytes;
    throw;
  }
}

void pool_free(int device, void* data, std::size_t bytes, cudaStream_t stream) noexcept {
  if (!data) return;
  ignore_errors(cudaFreeAsync(data, stream));
  per_device<Pool>(device).used -= bytes;
}

bool connect_pools(std::span<const int> devices) {
  for (const int device : devices)
    for (const int other : devices)
      if (other != device && !open_to(device, other)) return false;
  return true;
}

std::size_t memory_limit(int device) { return per_device<Pool>(device).limit; }

MemoryInfo memory_info(int device) {
  const DeviceGuard guard(device);
  Pool& pool = pool_of(device);
  MemoryInfo info;
  cuuint64_t reserved = 0;
  FL_CUDA(cudaMemPoolGetAttribute(pool.handle, cudaMemPoolAttrReservedMemCurrent, &reserved));
  FL_CUDA(cudaMemGetInfo(&info.free, &info.total));
  info.used = pool.used;
  info.reserved = reserved;
  info.limit = pool.limit;
  info.pinned = pinned_bytes(device);
  return info;
}

void pool_trim(int device) { give_back_unused(pool_of(device).handle, device); }

void set_memory_limit(int device, std::size_t bytes) {
  const DeviceGuard guard(device);
  Pool& pool = pool_of(device);
  pool.limit = bytes;
  set_release_threshold(pool.handle, bytes);
}

}  // namespace fl::cuda
