// Streams, events, captures and graphs.
#include "scheduler.h"

using namespace simulated;

namespace {

struct Event {
  const Stream* stream = nullptr;  // null: never recorded, which counts as passed
  uint64_t pieces = 0;
  Graph* capture = nullptr;  // recorded in a capture: it belongs to the graph
  int device = 0;
};

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }
bool passed(const Event& event) { return !event.stream || event.stream->done >= event.pieces; }

std::vector<Stream*>& capturing_streams() {
  static std::vector<Stream*> streams;
  return streams;
}

thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

void join_capture(Stream& stream, Graph* graph) {
  stream.capture = graph;
  capturing_streams().push_back(&stream);
}

}  // namespace

long simulated::captures() { return long(capturing_streams().size()); }
cudaStreamCaptureMode simulated::capture_mode() { return mode; }

extern "C" {

// ---------------------------------------------------------------- streams
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Lock lock(mutex);
  *stream = reinterpret_cast<cudaStream_t>(new_stream());
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(mutex);
  stream_of(stream).destroyed = true;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Lock lock(mutex);
  const Stream& stream = stream_of(handle);
  if (stream.capture) return status(cudaErrorStreamCaptureUnsupported);
  run_until(stream, stream.queued);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const Lock lock(mutex);
  run_everything();
  return cudaSuccess;
}

// ---------------------------------------------------------------- events
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Lock lock(mutex);
  ++live_events;
  *event = reinterpret_cast<cudaEvent_t>(new Event{.device = current_device()});
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock(mutex);
  --live_events;
  delete &event_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Lock lock(mutex);
  const Stream& stream = stream_of(handle);
  if (stream.device != event_of(event).device) wrong("an event of one device is recorded on a stream of another");
  if (stream.capture) event_of(event) = {nullptr, 0, stream.capture, stream.device};
  else event_of(event) = {&stream, stream.queued, nullptr, stream.device};
  return cudaSuccess;
}

// A stream that waits for an event of a capture takes part in it.
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t handle_of_event, unsigned) {
  const Lock lock(mutex);
  Stream& stream = stream_of(handle);
  const Event event = event_of(handle_of_event);
  if (event.capture) {
    if (stream.capture && stream.capture != event.capture) return status(cudaErrorStreamCaptureMerge);
    if (!stream.capture) join_capture(stream, event.capture);
    return cudaSuccess;
  }
  if (stream.capture) return status(cudaErrorStreamCaptureIsolation);
  if (event.stream) enqueue_wait(stream, *event.stream, event.pieces);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(mutex);
  if (event_of(event).capture) return status(cudaErrorCapturedEvent);
  if (!passed(event_of(event))) run_some_piece();
  return passed(event_of(event)) ? cudaSuccess : status(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  return cudaSuccess;
}

// ---------------------------------------------------------------- captures
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  const Lock lock(mutex);
  if (stream_of(handle).capture) return status(cudaErrorIllegalState);
  ++live_graphs;
  join_capture(stream_of(handle), new Graph);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Lock lock(mutex);
  Graph* const captured = stream_of(handle).capture;
  if (!captured) return status(cudaErrorIllegalState);
  std::erase_if(capturing_streams(), [&](Stream* stream) {
    const bool ends = stream->capture == captured;
    if (ends) stream->capture = nullptr;
    return ends;
  });
  *graph = reinterpret_cast<cudaGraph_t>(captured);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* active) {
  const Lock lock(mutex);
  *active = stream_of(handle).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* active, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
  const Lock lock(mutex);
  if (id) *id = reinterpret_cast<uintptr_t>(stream_of(handle).capture);
  return cudaStreamIsCapturing(handle, active);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  std::swap(*other, mode);
  return cudaSuccess;
}

// ---------------------------------------------------------------- graphs
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const Lock lock(mutex);
  ++live_graphs;
  *exec = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  const Lock lock(mutex);
  ++graph_launches;
  for (const Work& piece : reinterpret_cast<Graph*>(exec)->pieces) enqueue(stream_of(handle), piece);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock(mutex);
  --live_graphs;
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Lock lock(mutex);
  --live_graphs;
  delete reinterpret_cast<Graph*>(exec);
  return cudaSuccess;
}
}
