#include "cuda/runtime/link.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/per_device.h"
#include "cuda/runtime/ring.h"
#include "cuda/runtime/streams.h"
#include "device/host_calls.h"
#include "device/timing.h"

namespace fl::cuda {

// ---------------------------------------------------------------- what calls go by
namespace {

struct Link {
  std::atomic<bool> claimed{false};
  std::atomic<double> bytes_per_us{link_bytes_per_us};
};

double copy_us(char* device_memory, char* pinned, cudaStream_t in, cudaStream_t out) {
  constexpr std::size_t half = PinnedBlocks::block_bytes / 2;
  const auto start = std::chrono::steady_clock::now();
  FL_CUDA(cudaMemcpyAsync(device_memory, pinned, half, cudaMemcpyHostToDevice, in));
  FL_CUDA(cudaMemcpyAsync(pinned + half, device_memory + half, half, cudaMemcpyDeviceToHost, out));
  FL_CUDA(cudaStreamSynchronize(in));
  FL_CUDA(cudaStreamSynchronize(out));
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double measured_bytes_per_us(int device, char* pinned, cudaStream_t in, cudaStream_t out) {
  constexpr std::size_t bytes = PinnedBlocks::block_bytes;
  const PoolBuffer memory(device, bytes, in);
  FinishOnError finish{in, out};  // the block is another call's when this fails
  FL_CUDA(cudaMemsetAsync(memory.data(), 0, bytes, in));
  FL_CUDA(cudaStreamSynchronize(in));
  double us = copy_us(memory.data(), pinned, in, out);
  for (int i = 0; i < 2; ++i) us = std::min(us, copy_us(memory.data(), pinned, in, out));
  finish.disarm();
  constexpr double latency_us = 12;  // of the copies and of waiting for them
  return double(bytes / 2) / std::max(us - latency_us, 1.0);
}

}  // namespace

void measure_link(int device, char* pinned, cudaStream_t in, cudaStream_t out) {
  Link& link = per_device<Link>(device);
  if (link.claimed.load(std::memory_order_relaxed) || link.claimed.exchange(true)) return;
  const std::size_t limit = memory_limit(device);
  if (limit && limit < 4 * PinnedBlocks::block_bytes) return;  // leaves it to the call
  try {
    link.bytes_per_us = measured_bytes_per_us(device, pinned, in, out);
  } catch (const OutOfMemory&) {
    // The call may still find what it needs, which can be less.
  }
}

// Each thread packs at 10 to 11 GB/s, and the three of a square product's matrices share them.
HostLink host_link(int device, int threads) {
  constexpr double call_us = 50, thread_bytes_per_us = 7e3;
  return {call_us, std::min(per_device<Link>(device).bytes_per_us.load(std::memory_order_relaxed),
                            thread_bytes_per_us * threads)};
}

// ---------------------------------------------------------------- for the benchmarks
// What the link can do: copies from and to pinned memory.
namespace {

// More than any cache holds. Larger transfers go through it several times.
constexpr std::size_t most_pinned = std::size_t(256) << 20;

class Pinned {
 public:
  explicit Pinned(std::size_t bytes) { FL_CUDA(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault)); }
  ~Pinned() { ignore_errors(cudaFreeHost(data_)); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// One direction: so many bytes from one place to another, again and again through the same memory.
struct Direction {
  std::size_t bytes;
  void* to;
  const void* from;
  cudaStream_t stream;

  void copy() const {
    for (std::size_t done = 0; done < bytes; done += most_pinned)
      FL_CUDA(cudaMemcpyAsync(to, from, std::min(bytes - done, most_pinned), cudaMemcpyDefault, stream));
  }
};

double median_us(const std::vector<Direction>& directions, int repeats) {
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Direction& direction : directions) direction.copy();
    for (const Direction& direction : directions) FL_CUDA(cudaStreamSynchronize(direction.stream));
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - begin;
    if (i > 0) times.push_back(elapsed.count());  // the first is there to warm up
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[std::size_t(repeats) / 2];
}

}  // namespace

LinkTimes time_link(int device, std::size_t in_bytes, std::size_t out_bytes, int repeats) {
  const DeviceGuard guard(device);
  if (in_bytes == 0 || out_bytes == 0 || repeats < 1)
    throw InvalidValue("time_link needs bytes in both directions and at least one repeat");
  const std::size_t in_size = std::min(in_bytes, most_pinned), out_size = std::min(out_bytes, most_pinned);
  const Pinned host_in(in_size), host_out(out_size);
  const StreamLease in(device, nullptr), out(device, nullptr);
  const PoolBuffer device_in(device, in_size, in.get()), device_out(device, out_size, out.get());
  const Direction there{in_bytes, device_in.data(), host_in.data(), in.get()};
  const Direction back{out_bytes, host_out.data(), device_out.data(), out.get()};
  return {median_us({there}, repeats), median_us({back}, repeats), median_us({there, back}, repeats)};
}

}  // namespace fl::cuda
