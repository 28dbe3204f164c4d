// What the tests do themselves with the device: streams of a caller, captures, pinned memory. Called from Python
// (caller_streams.py).
#include "scheduler.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void* simulated_stream() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithPriority(&stream, 0, 0);
  return stream;
}

EXPORTED int simulated_destroy_stream(void* stream) { return cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }

EXPORTED int simulated_begin_capture(void* stream) {
  return cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeGlobal);
}

// The graph, ready to be launched.
EXPORTED void* simulated_end_capture(void* stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  if (cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &graph) != cudaSuccess) return nullptr;
  cudaGraphInstantiate(&exec, graph, 0);
  return exec;
}

EXPORTED int simulated_launch(void* graph, void* stream) {
  return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), static_cast<cudaStream_t>(stream));
}

EXPORTED bool simulated_context_made() { return simulated::context_made(); }

EXPORTED int simulated_graph_launches() { return simulated::graph_launches; }
EXPORTED long simulated_lines_prepacked() { return simulated::lines_prepacked; }

// From now on there is no memory to make graphs with, or to start them.
EXPORTED void simulated_refuse_graphs(bool made, bool started) {
  simulated::refuse_made = made;
  simulated::refuse_started = started;
}

// One of the next copies on the device fails, after so many.
EXPORTED void simulated_fail(int device, int copies) {
  const simulated::Lock lock(simulated::mutex);
  simulated::copies_left = copies;
  simulated::failing_device = device;
}

// Whether the failure that was asked for has not happened.
EXPORTED bool simulated_still_to_fail() { return simulated::failing_device >= 0; }

EXPORTED int simulated_synchronize() { return cudaDeviceSynchronize(); }

EXPORTED void* simulated_pinned(size_t bytes) {
  void* memory = nullptr;
  cudaHostAlloc(&memory, bytes, 0);
  return memory;
}
