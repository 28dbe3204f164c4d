// Work on one device after work on another, and copies between the memory of two.
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/events.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/per_device.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"
#include "device/streams.h"

namespace fl::cuda {
namespace {

cudaStream_t handle(const DeviceStream& x) { return static_cast<cudaStream_t>(x.stream); }

struct Reach {
  std::atomic<uint64_t> devices{0};  // a bit each
};

// Lets `device`, which is current, read the memory of another: the pool's, and what other libraries have allocated.
// Where it cannot, the driver copies through host memory by itself.
void reach(int device, int other) {
  std::atomic<uint64_t>& reached = per_device<Reach>(device).devices;
  const uint64_t bit = uint64_t(1) << other;
  if (reached & bit) return;
  const int pair[] = {std::min(device, other), std::max(device, other)};
  if (connect_pools(pair)) {
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) static_cast<void>(cudaGetLastError());
    else if (error != cudaSuccess) fail(error, "cudaDeviceEnablePeerAccess(other, 0)", __FILE__, __LINE__);
  }
  reached |= bit;
}

}  // namespace

void order_across(const DeviceStream& later, const DeviceStream& earlier) {
  if (later.device == earlier.device) {
    if (later.stream != earlier.stream) order_after(later.device, later.stream, earlier.stream);
    return;
  }
  require_device(later.device);
  order_or_wait(earlier.device, handle(earlier), [&] {
    const EventLease event(earlier.device);
    FL_CUDA(cudaEventRecord(event.get(), handle(earlier)));
    const DeviceGuard other(later.device);
    FL_CUDA(cudaStreamWaitEvent(handle(later), event.get(), 0));
  });
}

void copy_across(const DeviceStream& to, void* target, const DeviceStream& from, const void* source,
                 std::size_t bytes) {
  if (bytes == 0) return;
  order_across(to, from);
  {
    const DeviceGuard guard(to.device);
    if (to.device == from.device) {
      FL_CUDA(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, handle(to)));
    } else {
      const AllowDuringCapture allow;
      reach(to.device, from.device);
      FL_CUDA(cudaMemcpyPeerAsync(target, to.device, source, from.device, bytes, handle(to)));
    }
  }
  order_across(from, to);
}

}  // namespace fl::cuda
