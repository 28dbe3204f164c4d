// What the link between host and device can do, for the benchmarks: copies from and to pinned memory.
#include <algorithm>
#include <chrono>
#include <vector>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/timing.h"

namespace fl::cuda {
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
