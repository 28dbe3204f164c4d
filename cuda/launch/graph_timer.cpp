// Times work on the device without the host's share: the calls are captured in a CUDA graph, whose launch costs the
// host the same however many kernels it holds.
#include <chrono>
#include <memory>
#include <type_traits>

#include "core/errors.h"
#include "cuda/launch/graph.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/streams.h"
#include "device/timing.h"

namespace fl::cuda {
namespace {

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { ignore_errors(cudaEventDestroy(event)); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;

Event create_event() {
  cudaEvent_t event = nullptr;
  FL_CUDA(cudaEventCreate(&event));
  return Event(event);
}

// Until the clocks have come up.
void warm_up(cudaGraphExec_t graph, cudaStream_t stream) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(20);
  do {
    FL_CUDA(cudaGraphLaunch(graph, stream));
    FL_CUDA(cudaStreamSynchronize(stream));
  } while (Clock::now() < end);
}

// One event between each replay and the next, with no pause: an event recorded on an idle device would count the launch
// of the graph that follows. The first replay is there to keep the device busy until then, and is not timed.
std::vector<double> replay(cudaGraphExec_t graph, cudaStream_t stream, int replays) {
  std::vector<Event> events;
  for (int i = 0; i <= replays; ++i) events.push_back(create_event());
  FL_CUDA(cudaGraphLaunch(graph, stream));
  FL_CUDA(cudaEventRecord(events.front().get(), stream));
  for (int i = 1; i <= replays; ++i) {
    FL_CUDA(cudaGraphLaunch(graph, stream));
    FL_CUDA(cudaEventRecord(events[std::size_t(i)].get(), stream));
  }
  FL_CUDA(cudaStreamSynchronize(stream));
  std::vector<double> microseconds;
  for (int i = 1; i <= replays; ++i) {
    float milliseconds = 0;
    FL_CUDA(cudaEventElapsedTime(&milliseconds, events[std::size_t(i) - 1].get(), events[std::size_t(i)].get()));
    microseconds.push_back(1e3 * double(milliseconds));
  }
  return microseconds;
}

}  // namespace

std::vector<double> time_in_graph(int device, int launches, int replays, const std::function<void(void*)>& work) {
  const DeviceGuard guard(device);
  if (launches < 1 || replays < 1) throw InvalidValue("time_in_graph needs at least one launch and one replay");
  const StreamLease lease(device, nullptr);
  const cudaStream_t stream = lease.get();
  work(stream);  // loads the kernels and fills the pools, and fails in plain sight if it must
  FL_CUDA(cudaStreamSynchronize(stream));
  const GraphExec graph = record(stream, [&](cudaStream_t captured) {
    for (int i = 0; i < launches; ++i) work(captured);
  });
  warm_up(graph.get(), stream);
  std::vector<double> times = replay(graph.get(), stream, replays);
  for (double& time : times) time /= launches;
  return times;
}

}  // namespace fl::cuda
