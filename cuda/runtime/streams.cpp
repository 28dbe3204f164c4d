#include "cuda/runtime/streams.h"

#include <mutex>

#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"

namespace fl::cuda {
namespace {

struct Streams {
  IdleHandles<cudaStream_t> idle[2];  // by urgency
  std::atomic<int> urgent{0};
  std::once_flag library_once;
  cudaStream_t library = nullptr;
};

cudaStream_t create_stream(Urgency urgency = Urgency::normal) {
  const AllowDuringCapture allow;
  int least = 0, greatest = 0;
  FL_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  const int priority = urgency == Urgency::urgent ? greatest : least;
  FL_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
  return stream;
}

cudaStream_t borrow(Streams& streams, Urgency urgency) {
  cudaStream_t stream = nullptr;
  return streams.idle[int(urgency)].take(&stream, 1) ? stream : create_stream(urgency);
}

}  // namespace

StreamLease::StreamLease(int device, void* given, Urgency urgency)
    : device_(device),
      borrowed_(given == nullptr),
      urgency_(urgency),
      stream_(given ? static_cast<cudaStream_t>(given) : borrow(per_device<Streams>(device), urgency)) {
  per_device<Streams>(device).urgent += urgency == Urgency::urgent;
}

StreamLease::~StreamLease() {
  Streams& streams = per_device<Streams>(device_);
  streams.urgent -= urgency_ == Urgency::urgent;
  if (borrowed_) streams.idle[int(urgency_)].give_back(&stream_, 1);
}

const std::atomic<int>& urgent_leases(int device) { return per_device<Streams>(device).urgent; }

FinishOnError::~FinishOnError() {
  for (const cudaStream_t stream : streams_) ignore_errors(cudaStreamSynchronize(stream));
}

cudaStream_t library_stream(int device) {
  Streams& streams = per_device<Streams>(device);
  std::call_once(streams.library_once, [&] { streams.library = create_stream(); });
  return streams.library;
}

}  // namespace fl::cuda
