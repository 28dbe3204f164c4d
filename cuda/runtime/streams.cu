#include "cuda/runtime/streams.h"

#include <mutex>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"

namespace fl::cuda {
namespace {

struct Streams {
  std::mutex mutex;  // guards idle and created; never held during a CUDA call
  std::vector<cudaStream_t> idle;
  std::size_t created = 0;
  std::once_flag library_once;
  cudaStream_t library = nullptr;
};

cudaStream_t create_stream() {
  const AllowDuringCapture allow;
  cudaStream_t stream = nullptr;
  FL_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

// There are never more streams than calls that ran at the same time.
cudaStream_t borrow(Streams& streams) {
  {
    const std::lock_guard lock(streams.mutex);
    if (!streams.idle.empty()) {
      const cudaStream_t stream = streams.idle.back();
      streams.idle.pop_back();
      return stream;
    }
    streams.idle.reserve(++streams.created);  // so that giving it back cannot fail
  }
  return create_stream();
}

}  // namespace

StreamLease::StreamLease(int device, void* given)
    : device_(device),
      borrowed_(given == nullptr),
      stream_(given ? static_cast<cudaStream_t>(given) : borrow(per_device<Streams>(device))) {}

StreamLease::~StreamLease() {
  if (!borrowed_) return;
  Streams& streams = per_device<Streams>(device_);
  const std::lock_guard lock(streams.mutex);
  streams.idle.push_back(stream_);
}

FinishOnError::~FinishOnError() {
  for (const cudaStream_t stream : streams_) ignore_errors(cudaStreamSynchronize(stream));
}

cudaStream_t library_stream(int device) {
  Streams& streams = per_device<Streams>(device);
  std::call_once(streams.library_once, [&] { streams.library = create_stream(); });
  return streams.library;
}

}  // namespace fl::cuda
