// Kernels of a list of products, which run beside each other on streams of the library's.
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/operations.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/launch/placement.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/events.h"
#include "cuda/runtime/memory_pool.h"
#include "device/launches.h"
#include "device/streams.h"

namespace fl::cuda {
namespace {

constexpr std::size_t most_streams = 8;
// A kernel with a larger workspace than that has the device to itself for most of its time. All of them use one.
constexpr std::size_t most_beside = std::size_t(32) << 20;  // bytes

// Streams that begin where the call's own, the first, is now. It goes on when the others are done.
class ForkedStreams {
 public:
  ForkedStreams(int device, cudaStream_t stream, std::size_t count) : event_(device), streams_{stream} {
    if (count > 1) FL_CUDA(cudaEventRecord(event_.get(), stream));
    while (streams_.size() < count) {
      streams_.push_back(leases_.emplace_back(device, nullptr).get());
      FL_CUDA(cudaStreamWaitEvent(streams_.back(), event_.get(), 0));
      finish_.add(streams_.back());
    }
  }
  cudaStream_t operator[](std::size_t i) const { return streams_[i]; }
  void join() {
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      FL_CUDA(cudaEventRecord(event_.get(), streams_[i]));
      FL_CUDA(cudaStreamWaitEvent(streams_[0], event_.get(), 0));
    }
    finish_.disarm();
  }

 private:
  const EventLease event_;
  std::deque<StreamLease> leases_;
  std::vector<cudaStream_t> streams_;
  FinishOnError finish_;
};

// Which stream each launch is on, and where the workspace of each stream begins.
struct Streams {
  std::vector<std::size_t> of_launch, begin;
  std::size_t bytes = 0;

  Streams(std::span<const AnyLaunch> launches, std::size_t count) : begin(count) {
    std::vector<std::size_t> each(count);
    for (const AnyLaunch& any : launches) {
      const std::size_t own = std::visit([](const auto& one) { return one.kernel->workspace(one.args); }, any);
      const std::size_t stream = own > most_beside ? 0 : of_launch.size() % count;
      of_launch.push_back(stream);
      each[stream] = std::max(each[stream], aligned(own));
    }
    for (std::size_t i = 0; i < count; ++i) begin[i] = std::exchange(bytes, bytes + each[i]);
  }
};

// What is captured by somebody else is captured in a row: a stream of the library's would stay in that capture.
std::size_t stream_count(std::span<const AnyLaunch> launches, int device, cudaStream_t stream) {
  return capturing(device, stream) ? 1 : std::min(launches.size(), most_streams);
}

}  // namespace

void run_on_device_operands(std::span<const AnyLaunch> launches, int device, void* stream) {
  require_device(device);
  const DeviceGuard guard(device);
  const cudaStream_t queue = stream_of(stream, device);
  const std::size_t count = stream_count(launches, device, queue);
  const Streams streams(launches, count);
  const PoolBuffer workspace(device, streams.bytes, queue);
  ForkedStreams forked(device, queue, count);
  for (std::size_t i = 0; i < launches.size(); ++i)
    std::visit(
        [&](const auto& one) {
          const std::size_t on = streams.of_launch[i];
          try {
            launch_kernel(*one.kernel, one.args, device, workspace.data() + streams.begin[on], forked[on]);
          } catch (const CudaError& error) {
            throw named(error, *one.kernel, "cuda:" + std::to_string(device));
          }
        },
        launches[i]);
  forked.join();
}

}  // namespace fl::cuda
