// The pool, pinned memory and copies.
//
// Memory of the pool can be used where its allocation has been done and its freeing has not, in the order of the
// stream: it is poisoned at both ends, and freed memory is watched for a while. A copy first poisons what it will
// overwrite, as a piece of its own. Pageable memory has been read, or written, when the copy from or to it returns.
#include "memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "scheduler.h"

using namespace simulated;

namespace {

struct Range {
  std::size_t bytes;
  int device = -1;
};
constexpr int of_caller = -2;                 // in place of a device: pinned, and not by the host layer
using Ranges = std::map<const char*, Range>;  // by their begin

struct Pool {
  std::size_t allocated = 0, reserved = 0, release_threshold = 0;
  uint64_t open_to = 0;  // devices, a bit each
};

Ranges live, pinned;
Pool pools[64];                                         // of the devices
constexpr std::size_t context = std::size_t(16) << 20;  // what the driver takes for itself

std::size_t device_bytes() {
  static const std::size_t bytes = [] {
    const char* text = std::getenv("FASTLINALG_SIMULATED_MEMORY");
    return text ? std::size_t(std::atoll(text)) : std::size_t(1) << 30;
  }();
  return bytes;
}

Pool& pool_of(cudaMemPool_t handle) { return *reinterpret_cast<Pool*>(handle); }
int device_of(const Pool& pool) { return int(&pool - pools); }

const Range* around(const Ranges& ranges, const void* data, std::size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  auto range = ranges.upper_bound(begin);
  if (range == ranges.begin()) return nullptr;
  --range;
  return begin + bytes <= range->first + range->second.bytes ? &range->second : nullptr;
}
bool inside(const Ranges& ranges, const void* data, std::size_t bytes) { return around(ranges, data, bytes); }
bool on_device(const void* data) { return inside(live, data, 1); }
bool pageable(const void* data) { return !on_device(data) && !inside(pinned, data, 1); }

// ---------------------------------------------------------------- freed memory
struct Freed {
  char* data;
  std::size_t bytes;
};
std::deque<Freed> watched;
std::size_t watched_bytes = 0;
constexpr std::size_t most_watched = std::size_t(64) << 20;

void watch(char* data, std::size_t bytes) {
  watched.push_back({data, bytes});
  watched_bytes += bytes;
  for (; watched_bytes > most_watched || watched.size() > 1000; watched.pop_front()) {
    const Freed& oldest = watched.front();
    if (!each_byte_is(poison, oldest.data, oldest.bytes))
      wrong("memory of the pool was written after it had been freed");
    watched_bytes -= oldest.bytes;
    std::free(oldest.data);
  }
}

void give_back_unused(Pool& pool, std::size_t keep) {
  pool.reserved = std::max(std::min(pool.reserved, keep), pool.allocated);
}

// ---------------------------------------------------------------- copies
struct Rectangle {
  char* to;
  const char* from;
  std::size_t to_pitch, from_pitch, width, lines;
  bool by_driver = false;  // which reaches the memory of every device

  static std::size_t extent(std::size_t pitch, std::size_t width, std::size_t lines) {
    return (lines - 1) * pitch + width;
  }
  std::size_t to_bytes() const { return extent(to_pitch, width, lines); }
  std::size_t from_bytes() const { return extent(from_pitch, width, lines); }
  void poison_target() const {
    for (std::size_t i = 0; i < lines; ++i) std::memset(to + i * to_pitch, poison, width);
  }
  void copy() const {
    for (std::size_t i = 0; i < lines; ++i) std::memcpy(to + i * to_pitch, from + i * from_pitch, width);
  }
};

void check(const Rectangle& copy, bool check_to, bool check_from) {
  if (check_to) check_device_access(copy.to, copy.to_bytes(), "the target of a copy", true);
  if (check_from && !copy.by_driver) check_device_access(copy.from, copy.from_bytes(), "the source of a copy", true);
}

cudaError_t copy(Rectangle copy, cudaMemcpyKind kind, cudaStream_t handle) {
  if (copy.width == 0 || copy.lines == 0) return cudaSuccess;
  const Lock lock(mutex);
  Stream& stream = stream_of(handle);
  const bool to_pageable = pageable(copy.to), from_pageable = pageable(copy.from);
  for (const char* const side : {static_cast<const char*>(copy.to), copy.from})
    if (const Range* const range = around(pinned, side, 1)) direct_copies += range->device == of_caller;
  if ((kind == cudaMemcpyHostToDevice && !on_device(copy.to)) ||
      (kind == cudaMemcpyDeviceToHost && !on_device(copy.from)))
    return status(cudaErrorInvalidValue);
  if (stream.capture && (to_pageable || from_pageable)) return status(cudaErrorStreamCaptureUnsupported);
  std::shared_ptr<std::vector<char>> staged;
  if (from_pageable) {
    staged = std::make_shared<std::vector<char>>(copy.from, copy.from + copy.from_bytes());
    copy.from = staged->data();
  }
  enqueue(stream, [=] {
    check(copy, !to_pageable, !from_pageable);
    copy.poison_target();
  });
  enqueue(stream, [=] {
    check(copy, !to_pageable, !from_pageable);
    static_cast<void>(staged);
    copy.copy();
  });
  if (to_pageable) run_until(stream, stream.queued);
  return cudaSuccess;
}

}  // namespace

void simulated::check_device_access(const void* data, std::size_t bytes, const char* what, bool of_others) {
  if (bytes == 0 || inside(pinned, data, bytes)) return;
  const Range* const range = around(live, data, bytes);
  if (!range) wrong(std::string(what) + " is not, or no longer, device memory or pinned memory");
  const bool open = of_others && (pools[range->device].open_to >> running_device & 1);
  if (range->device != running_device && !open) wrong(std::string(what) + " is memory of another device");
}

long simulated::allocated_bytes() {
  std::size_t bytes = 0;
  for (const auto& [data, range] : live) bytes += range.bytes;
  return long(bytes);
}
long simulated::pinned_blocks() { return long(pinned.size()); }

extern "C" {

// ---------------------------------------------------------------- the pool
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  const Lock lock(mutex);
  ++live_pools;
  *pool = reinterpret_cast<cudaMemPool_t>(&pools[properties->location.id]);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
  const Lock lock(mutex);
  --live_pools;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, size_t count) {
  const Lock lock(mutex);
  for (size_t i = 0; i < count; ++i) pool_of(pool).open_to |= uint64_t(1) << access[i].location.id;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const Lock lock(mutex);
  if (attribute != cudaMemPoolAttrReleaseThreshold) return status(cudaErrorInvalidValue);
  pool_of(pool).release_threshold = *static_cast<uint64_t*>(value);
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  const Lock lock(mutex);
  if (attribute != cudaMemPoolAttrReservedMemCurrent) return status(cudaErrorInvalidValue);
  Pool& pool = pool_of(handle);
  give_back_unused(pool, pool.release_threshold);
  *static_cast<uint64_t*>(value) = pool.reserved;
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  const Lock lock(mutex);
  give_back_unused(pool_of(pool), bytes);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(mutex);
  *total = device_bytes();
  *free = device_bytes() - context - pools[current_device()].reserved;
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** data, size_t bytes, cudaMemPool_t handle, cudaStream_t stream) {
  const Lock lock(mutex);
  Pool& pool = pool_of(handle);
  if (stream_of(stream).device != device_of(pool)) wrong("memory of one device is allocated on a stream of another");
  if (bytes > device_bytes() - context - pool.allocated) return status(cudaErrorMemoryAllocation);
  char* const block = static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (!block) return status(cudaErrorMemoryAllocation);
  std::memset(block, poison, bytes);
  live[block] = {bytes, device_of(pool)};
  pool.allocated += bytes;
  pool.reserved = std::max(pool.reserved, pool.allocated);
  enqueue(stream_of(stream), [=] { std::memset(block, poison, bytes); });
  *data = block;
  return cudaSuccess;
}

// What is allocated in a capture belongs to the graph, and stays.
cudaError_t cudaFreeAsync(void* data, cudaStream_t handle) {
  const Lock lock(mutex);
  char* const block = static_cast<char*>(data);
  const auto found = live.find(block);
  if (found == live.end()) wrong("something is freed that is not allocated");
  const auto [bytes, device] = found->second;
  if (stream_of(handle).device != device) wrong("memory of one device is freed on a stream of another");
  const bool captured = stream_of(handle).capture;
  enqueue(stream_of(handle), [block, bytes = bytes, device = device, captured] {
    std::memset(block, poison, bytes);
    if (captured) return;
    if (live.erase(block) == 0) wrong("the same memory is freed twice");
    pools[device].allocated -= bytes;
    watch(block, bytes);
  });
  return cudaSuccess;
}

// ---------------------------------------------------------------- pinned memory
cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned) {
  const Lock lock(mutex);
  std::memset(data, poison, bytes);  // the host layer registers only memory that nobody has used
  pinned[static_cast<char*>(data)] = {bytes};
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* data) {
  const Lock lock(mutex);
  return pinned.erase(static_cast<char*>(data)) ? cudaSuccess : status(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned flags) {
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*data) return status(cudaErrorMemoryAllocation);
  cudaHostRegister(*data, bytes, flags);
  const Lock lock(mutex);
  pinned[static_cast<char*>(*data)].device = of_caller;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  if (const cudaError_t error = cudaHostUnregister(data); error != cudaSuccess) return error;
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const Lock lock(mutex);
  *attributes = {};
  attributes->type = on_device(data)           ? cudaMemoryTypeDevice
                     : inside(pinned, data, 1) ? cudaMemoryTypeHost
                                               : cudaMemoryTypeUnregistered;
  if (const Range* const range = around(live, data, 1)) attributes->device = range->device;
  return cudaSuccess;
}

// ---------------------------------------------------------------- copies
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy({static_cast<char*>(to), static_cast<const char*>(from), bytes, bytes, bytes, 1}, kind, stream);
}

// Through memory of the host where the devices cannot reach each other's.
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  const char *const target = static_cast<const char*>(to), *const source = static_cast<const char*>(from);
  {
    const Lock lock(mutex);
    const Range *const there = around(live, target, bytes), *const here = around(live, source, bytes);
    if (!there || !here || there->device != to_device || here->device != from_device)
      wrong("a copy between devices names others than those that the memory is on");
    copies_without_access += !(pools[from_device].open_to >> to_device & 1);
  }
  return copy({static_cast<char*>(to), source, bytes, bytes, bytes, 1, true}, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  const Lock lock(mutex);
  static std::set<std::pair<int, int>> enabled;
  const bool fresh = enabled.insert({current_device(), peer}).second;
  return fresh ? cudaSuccess : status(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t lines, cudaMemcpyKind kind, cudaStream_t stream) {
  if (to_pitch < width || from_pitch < width) return status(cudaErrorInvalidPitchValue);
  return copy({static_cast<char*>(to), static_cast<const char*>(from), to_pitch, from_pitch, width, lines}, kind,
              stream);
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  const Lock lock(mutex);
  enqueue(stream_of(stream), [=] {
    check_device_access(data, bytes, "the target of a memset");
    std::memset(data, value, bytes);
  });
  return cudaSuccess;
}
}
