// The order of streams: one waits for another, of its own device or of another one, or the host for one; an event in
// the work of a stream; and copies between the memory of two devices.
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

cudaStream_t handle(void* stream) { return static_cast<cudaStream_t>(stream); }

// Which capture a stream takes part in; 0 is none. The legacy stream may not be asked while a blocking stream is
// captured: the answer is then an error that does the capture no harm, and the legacy stream itself is in none.
unsigned long long capture_of(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  const cudaError_t error = cudaStreamGetCaptureInfo(handle(stream), &status, &id);
  if (error == cudaErrorStreamCaptureImplicit) static_cast<void>(cudaGetLastError());
  else if (error != cudaSuccess) fail(error, "cudaStreamGetCaptureInfo(stream)", __FILE__, __LINE__);
  return error == cudaSuccess && status == cudaStreamCaptureStatusActive ? id : 0;
}

}  // namespace

void* own_stream(int device) {
  const DeviceGuard guard(device);
  return library_stream(device);
}

bool capturing(int device, void* stream) {
  const DeviceGuard guard(device);
  return capture_of(stream) != 0;
}

bool order_after(int device, void* later, void* earlier) {
  bool possible = true;
  order_or_wait(device, handle(earlier), [&] {
    const auto graph = capture_of(later);
    possible = graph == 0 || capture_of(earlier) == graph;
    if (!possible) return;
    const EventLease event(device);
    FL_CUDA(cudaEventRecord(event.get(), handle(earlier)));
    FL_CUDA(cudaStreamWaitEvent(handle(later), event.get(), 0));
  });
  return possible;
}

void wait_for(int device, void* stream) {
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  if (capture_of(stream) == 0) FL_CUDA(cudaStreamSynchronize(handle(stream)));
}

StreamEvent::StreamEvent(int device, void* stream) : device_(device), event_(nullptr) {
  order_or_wait(device, handle(stream), [&] {
    if (capture_of(stream) != 0) return;
    const cudaEvent_t event = borrow_event(device);
    if (const cudaError_t error = cudaEventRecord(event, handle(stream)); error != cudaSuccess) {
      give_back_event(device, event);
      fail(error, "cudaEventRecord(event, stream)", __FILE__, __LINE__);
    }
    event_ = event;
  });
}

StreamEvent::~StreamEvent() {
  if (event_ && device_count() > 0) give_back_event(device_, static_cast<cudaEvent_t>(event_));
}

// A capture in the default mode, by whichever thread, forbids the question to all others.
bool StreamEvent::passed() const {
  if (!event_ || device_count() == 0) return true;
  const DeviceGuard guard(device_, std::nothrow);
  const AllowDuringCapture allow;
  const cudaError_t error = cudaEventQuery(static_cast<cudaEvent_t>(event_));
  static_cast<void>(cudaGetLastError());
  return error != cudaErrorNotReady;  // after a failure of the device there is nothing to wait for
}

// ---------------------------------------------------------------- of two devices
namespace {

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
  order_or_wait(earlier.device, handle(earlier.stream), [&] {
    const EventLease event(earlier.device);
    FL_CUDA(cudaEventRecord(event.get(), handle(earlier.stream)));
    const DeviceGuard other(later.device);
    FL_CUDA(cudaStreamWaitEvent(handle(later.stream), event.get(), 0));
  });
}

void copy_across(const DeviceStream& to, void* target, const DeviceStream& from, const void* source,
                 std::size_t bytes) {
  if (bytes == 0) return;
  order_across(to, from);
  {
    const DeviceGuard guard(to.device);
    if (to.device == from.device) {
      FL_CUDA(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, handle(to.stream)));
    } else {
      const AllowDuringCapture allow;
      reach(to.device, from.device);
      FL_CUDA(cudaMemcpyPeerAsync(target, to.device, source, from.device, bytes, handle(to.stream)));
    }
  }
  order_across(from, to);
}

}  // namespace fl::cuda
