// The library's own streams. All are non-blocking: nothing here touches the legacy default stream, whose work waits for
// that of every other stream of the process.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <initializer_list>
#include <vector>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"

namespace fl::cuda {

// Kernels of an urgent stream go before those of others that have not begun.
enum class Urgency { normal, urgent };

// The caller's stream as it is, or, for null, a stream that no other call uses while the lease lasts.
class StreamLease {
 public:
  StreamLease(int device, void* given, Urgency urgency = Urgency::normal);
  ~StreamLease();
  StreamLease(const StreamLease&) = delete;
  StreamLease& operator=(const StreamLease&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  int device_;
  bool borrowed_;
  Urgency urgency_;
  cudaStream_t stream_;
};

// How many leases of a device are urgent.
const std::atomic<int>& urgent_leases(int device);

// Waits for streams when a call fails: nothing may touch the caller's memory, or pinned memory, after that.
class FinishOnError {
 public:
  explicit FinishOnError(std::initializer_list<cudaStream_t> streams = {}) : streams_(streams) {}
  ~FinishOnError();
  void add(cudaStream_t stream) { streams_.push_back(stream); }
  void disarm() { streams_.clear(); }

 private:
  std::vector<cudaStream_t> streams_;
};

inline bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FL_CUDA(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

// The legacy stream may not be asked while a blocking stream is captured: what is then queued there says what is wrong.
inline bool outside_captures(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) return status == cudaStreamCaptureStatusNone;
  static_cast<void>(cudaGetLastError());
  return false;
}

// order(), with the device current, makes it wait for what is on a stream. Where it cannot, for want of memory say, the
// host waits: what comes next may give memory back that the stream still uses.
template <class Order>
void order_or_wait(int device, cudaStream_t stream, Order&& order) {
  require_device(device);
  try {
    const DeviceGuard guard(device);
    order();
  } catch (...) {
    const DeviceGuard guard(device, std::nothrow);
    const AllowDuringCapture allow;
    if (!outside_captures(stream)) throw;  // which a wait would spoil
    FL_CUDA(cudaStreamSynchronize(stream));
  }
}

// The stream of asynchronous calls that name none: one per device, so that such calls run in the order they were made.
cudaStream_t library_stream(int device);

}  // namespace fl::cuda
