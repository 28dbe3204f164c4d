// What the tests do themselves with the device: streams of a caller, captures, pinned memory. Called from Python
// (caller_streams.py).
#include <algorithm>
#include <iterator>

#include "operands.h"
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
  cudaGraphDestroy(graph);
  return exec;
}
EXPORTED void simulated_destroy_graph(void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

EXPORTED int simulated_launch(void* graph, void* stream) {
  return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), static_cast<cudaStream_t>(stream));
}

EXPORTED bool simulated_context_made() { return simulated::context_made(); }

EXPORTED int simulated_graph_launches() { return simulated::graph_launches; }
EXPORTED int simulated_group_launches() { return simulated::group_launches; }
EXPORTED long simulated_lines_prepacked() { return simulated::lines_prepacked; }
EXPORTED long simulated_copies_without_access() { return simulated::copies_without_access; }
EXPORTED long simulated_direct_copies() { return simulated::direct_copies; }
EXPORTED long simulated_widened_halves() { return simulated::widened_halves; }

// The calls of the host layer from the first to the last, counted from now on, fail with this error.
EXPORTED void simulated_fail_calls(long first, long last, int error) {
  simulated::fail_calls(first, last, cudaError_t(error));
}
EXPORTED const char* simulated_failed_call() { return simulated::failed_call(); }  // empty: none has failed

// What is there, and what a call has to leave as it was in its thread.
EXPORTED void simulated_state(long* state) {
  using namespace simulated;
  const Lock lock(mutex);
  const long now[] = {allocated_bytes(), pinned_blocks(), live_pools,       open_streams(),      live_events,
                      live_graphs,       captures(),      current_device(), long(capture_mode())};
  std::copy(std::begin(now), std::end(now), state);
}

EXPORTED int simulated_synchronize() { return cudaDeviceSynchronize(); }

EXPORTED void* simulated_pinned(size_t bytes) {
  void* memory = nullptr;
  cudaHostAlloc(&memory, bytes, 0);
  return memory;
}
