// Device memory that outlives a call and is used by one run after another.
#include "check.h"
#include "device.h"
#include "device_guard.h"
#include "memory_pool.h"
#include "streams.h"

namespace fl::cuda {
namespace {

// An event recorded in a capture belongs to the graph: no other stream may wait for it, nor the graph for one from outside.
bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  FL_CUDA(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

KeptWorkspace::KeptWorkspace(std::size_t bytes, int device) : bytes_(bytes), device_(device) {
  const DeviceGuard guard(device);
  const AllowDuringCapture allow;
  const cudaStream_t stream = library_stream(device);
  data_ = pool_allocate(device, bytes, stream);
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);  // the memory may be used on any stream from now on
  if (error != cudaSuccess) {
    if (event) ignore_errors(cudaEventDestroy(event));
    pool_free(device, data_, bytes, stream);
    fail(error, "making a kept workspace", __FILE__, __LINE__);
  }
  last_use_ = event;
}

KeptWorkspace::~KeptWorkspace() {
  if (device_count() == 0) return;  // in a child of fork there is nothing to free
  try {
    const DeviceGuard guard(device_);
    const AllowDuringCapture allow;
    const cudaStream_t stream = library_stream(device_);
    ignore_errors(cudaStreamWaitEvent(stream, event_of(last_use_), 0));
    pool_free(device_, data_, bytes_, stream);
    ignore_errors(cudaEventDestroy(event_of(last_use_)));
  } catch (...) {
    // The driver has gone, or the device has failed: the memory went with it.
  }
}

void* KeptWorkspace::begin_use(void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  if (!is_capturing(queue)) FL_CUDA(cudaStreamWaitEvent(queue, event_of(last_use_), 0));
  return data_;
}

void KeptWorkspace::end_use(void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  if (!is_capturing(queue)) FL_CUDA(cudaEventRecord(event_of(last_use_), queue));
}

}  // namespace fl::cuda
