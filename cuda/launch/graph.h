// Work recorded in a CUDA graph.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "core/errors.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"

namespace fl::cuda {

// A graph saves 1.6 us a run of one kernel and 7 us of those of fp16x2; recording it takes 6 and 9 us (H200 host). So
// it is recorded when about as much has been lost without one, however many runs are still to come.
inline constexpr int runs_before_graph = 4;

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { ignore_errors(cudaGraphDestroy(graph)); }
  void operator()(cudaGraphExec_t graph) const { ignore_errors(cudaGraphExecDestroy(graph)); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

// Ends the capture on every way out: a stream left capturing would spoil the next call that borrows it.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    FL_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (stream_) end_after_error();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Graph end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph);
    Graph owned(graph);
    if (error != cudaSuccess) fail(error, "cudaStreamEndCapture", __FILE__, __LINE__);
    return owned;
  }

 private:
  void end_after_error() noexcept {
    cudaGraph_t graph = nullptr;
    ignore_errors(cudaStreamEndCapture(stream_, &graph));
    const Graph unused(graph);
  }
  cudaStream_t stream_;
};

// What work(stream) queues on a stream that nobody else uses.
template <class Work>
GraphExec record(cudaStream_t stream, Work&& work) {
  Capture capture(stream);
  work(stream);
  const Graph graph = capture.end();
  cudaGraphExec_t exec = nullptr;
  FL_CUDA(cudaGraphInstantiate(&exec, graph.get(), 0));
  return GraphExec(exec);
}

// The same where work can be queued without a graph too: null if it cannot be recorded, or for want of memory.
template <class Work>
GraphExec try_to_record(int device, Work&& work) {
  const AllowDuringCapture allow;
  try {
    const StreamLease lease(device, nullptr);
    return record(lease.get(), work);
  } catch (const CudaError&) {
    return nullptr;
  } catch (const OutOfMemory&) {
    return nullptr;
  }
}

inline void forget(GraphExec& graph) {
  if (!graph) return;
  const AllowDuringCapture allow;
  graph.reset();
}

// Starts the graph if there is one. The first start brings it to the device: if there is no memory for that, the graph
// is forgotten. False: nothing has been queued.
inline bool start(GraphExec& graph, cudaStream_t stream) {
  if (!graph) return false;
  const cudaError_t error = cudaGraphLaunch(graph.get(), stream);
  if (error == cudaSuccess) return true;
  if (error != cudaErrorMemoryAllocation) fail(error, "cudaGraphLaunch(graph, stream)", __FILE__, __LINE__);
  ignore_errors(error);
  forget(graph);
  return false;
}

// Work that a plan repeats, one run after the other: recorded when that has begun to pay.
class RepeatedWork {
 public:
  explicit RepeatedWork(int device) : device_(device) {}
  ~RepeatedWork() {
    if (device_count() == 0) static_cast<void>(graph_.release());  // a child of fork cannot even destroy it
    if (!graph_) return;
    const DeviceGuard guard(device_, std::nothrow);
    cuda::forget(graph_);  // it may be running
  }
  // What work(stream) queues, or the same for a stream to record from.
  template <class Work>
  void run(cudaStream_t stream, Work&& work) {
    if (++runs_ == runs_before_graph) graph_ = try_to_record(device_, work);
    if (!start(graph_, stream)) work(stream);
  }
  // The next run queues something else.
  void forget() {
    runs_ = 0;
    if (!graph_) return;
    const DeviceGuard guard(device_);
    cuda::forget(graph_);
  }

 private:
  int device_;
  GraphExec graph_ = nullptr;
  int runs_ = 0;
};

}  // namespace fl::cuda
