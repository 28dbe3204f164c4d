#include "cuda/runtime/link.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/per_device.h"
#include "cuda/runtime/ring.h"
#include "cuda/runtime/streams.h"
#include "device/host_calls.h"

namespace fl::cuda {
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

}  // namespace fl::cuda
