// The CUDA side as the rest of the library sees it. No CUDA header is needed to include this, and every function exists
// in a build without CUDA too (no_cuda.cpp), where there are no devices. Implemented in cuda/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/device_spec.h"
#include "core/element.h"
#include "core/triangle_copy.h"
#include "device/loaded_code.h"
#include "plan/prepacked_operand.h"
#include "table/registry.h"
#include "transfer/panel_plan.h"

namespace fl::cuda {

struct DeviceInfo {
  int ordinal = 0;
  std::size_t memory = 0;      // bytes
  int compute_capability = 0;  // 10 * major + minor of the hardware: decides which code the driver loads
  DeviceSpec spec;             // what calls may use: FASTLINALG_COMPUTE_CAPABILITY may leave less than there is
  std::string pretended;       // "FASTLINALG_COMPUTE_CAPABILITY=8.0 is set" where it does
  std::string ignored;         // why it does not, although it is set
  LoadedCode expected_code;    // of this library, in this environment
};

struct Unavailable {  // why device_count() is 0; code is a cudaError_t
  int code = 0;
  std::string name, message;
};

// Looks at the first question and keeps the answer. Creates no context, never throws; no device is a normal state. In a
// child of fork whose parent has looked and found devices there are none: the driver cannot be used there.
FL_EXPORT int device_count();
FL_EXPORT const Unavailable& unavailable();
FL_EXPORT const DeviceInfo& device_info(int device);
FL_EXPORT int driver_version();   // 13000 = CUDA 13.0; 0 if there is none
FL_EXPORT int runtime_version();  // of the static runtime in this library; 0 in a build without CUDA
FL_EXPORT const char* built_architectures();

// The code of this library that the device runs: what is expected, until load_code() has asked the runtime. That makes
// the device's context, so it is for calls that will run there. Dispatch on a device goes by known_code().
FL_EXPORT LoadedCode known_code(int device);
void load_code(int device);

// Throws CudaError unless `device` exists and this process may use it (a child of fork may not).
FL_EXPORT void require_device(int device);

struct MemoryInfo {
  std::size_t used = 0;             // bytes in live buffers of this library
  std::size_t reserved = 0;         // bytes its pool holds on the device
  std::size_t limit = 0;            // 0: none
  std::size_t free = 0, total = 0;  // of the device, as the driver reports
  std::size_t pinned = 0;           // bytes of pinned staging memory
};
FL_EXPORT MemoryInfo memory_info(int device);
FL_EXPORT void trim(int device);  // gives unused pool and staging memory back, and the graphs of calls that repeat
FL_EXPORT void set_memory_limit(int device, std::size_t bytes);  // 0 removes the limit

// Carries out a plan on operands in host memory: copies in, launches, copies out, and returns when the result is there.
// `layout` is what device_layout() returned for `host`, and the plan one for it; `stored` is what the operands hold.
// On several devices of one kind, in the order of their numbers, each carries out a part of it
// (transfer/device_shares.h). `stream`, of a call on one device, may be null: the library then uses one of its own.
// OutOfMemory comes before anything is written. `log`, if set, is told of a call that does not fit on the device and
// goes there in parts.
using Log = std::function<void(const std::string&)>;
template <class Args>
void run_on_host_operands(const PanelPlan<Args>& plan, const Args& host, const StoredInputs& stored, const Args& layout,
                          std::span<const int> devices, void* stream, const Log* log);

// What a call on host operands can expect of the link to a device and of so many threads that copy. Measured at the
// first such call; a usual speed before.
HostLink host_link(int device, int threads);

// The strides that a call's operands get on the device, with null pointers: contiguous rows padded to 16 bytes, in the
// operand's own order (C or F) where the kernels take it. Dispatch chooses a kernel for this, not for the host strides.
template <class Args>
Args device_layout(const Args& host);

// What a kernel has left at the start of its workspace.
struct FirstWords {
  unsigned words[2] = {};
  bool read = false;  // not during a capture, nor if there is no workspace
};

// Runs one kernel on operands in device memory, asynchronously on `stream`; null is the library's own stream of the
// device, on which calls run in order, DeviceBuffer's copies included. The workspace comes from the pool; with `left`
// the call waits for the kernel and reads what it has left there.
template <class Args>
void run_on_device_operands(const Kernel<Args>& kernel, const Args& args, int device, void* stream,
                            FirstWords* left = nullptr);

// The kernels of the products take matrices in C or F order whose lines follow one another. For other operands in
// device memory: the layout for dispatch, in which each operand that has to be copied first is a null pointer with the
// strides of its packed copy; nothing if there is none.
template <class Args>
std::optional<Args> packed_layout(const Args& args);

// The same on packed copies of the operands that `layout` says, made and brought back on the stream.
template <class Args>
void run_on_packed_operands(const Kernel<Args>& kernel, const Args& args, const Args& layout, int device, void* stream,
                            FirstWords* left = nullptr);

// Copies one triangle of matrices in device memory, asynchronously on `stream` as run_on_device_operands().
void copy_triangle(const TriangleCopy& copy, int device, void* stream);

// What a plan keeps on a device: its kernel's workspace, the prepacked of operands, and a run recorded as a CUDA graph,
// which starts in half the time of a launch. Runs on several streams wait for each other on the device. Those that are
// captured in another graph do not, and need the plan until that graph has gone.
class CapturedRun {
 public:
  CapturedRun(std::size_t workspace_bytes, const PrepackedOperands& prepacked, int device);  // without memory yet
  ~CapturedRun();
  // As run_on_device_operands(), and the same each time until forget().
  template <class Args>
  void run(const Kernel<Args>& kernel, const Args& args, void* stream);
  void forget();            // the next run launches something else
  void forget_prepacked();  // the next run makes them anew

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The split of one operand that products of several calls share, on any streams: they wait for each other on the
// device. The first run makes it. Not in a capture.
class ConstantSplit {
 public:
  ConstantSplit(const PrepackedOperand& prepacked, Side side, int device);  // without memory yet
  ~ConstantSplit();
  // As run_on_device_operands().
  void run(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args, void* stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- streams and memory of device arrays. A stream is a cudaStream_t; 1 and 2 are the runtime's own names for the
// legacy and the per-thread default stream.
FL_EXPORT void* own_stream(int device);  // of calls that name none: they run in the order they were made
FL_EXPORT bool capturing(int device, void* stream);

// What is queued on `later` from now on waits for what is on `earlier` now. A stream that a CUDA graph is captured from
// cannot wait for work outside the graph; nothing is done then, and the answer is false.
FL_EXPORT bool order_after(int device, void* later, void* earlier);

// The work that is on a stream now. Nothing is recorded of work that goes into a graph.
class FL_EXPORT StreamEvent {
 public:
  StreamEvent(int device, void* stream);
  ~StreamEvent();
  StreamEvent(StreamEvent&& other) noexcept : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
  StreamEvent& operator=(StreamEvent&& other) noexcept {
    std::swap(device_, other.device_), std::swap(event_, other.event_);
    return *this;
  }
  bool passed() const;  // the device has done it

 private:
  int device_;
  void* event_;
};

// Memory of the library's pool, for work queued on `stream` from now on; given back in the order of that stream.
FL_EXPORT std::shared_ptr<void> allocate(int device, std::size_t bytes, void* stream);

// Copies between host and device in the order of own_stream(device), and returns when the copy is there.
FL_EXPORT void copy(int device, void* to, const void* from, std::size_t bytes);

// A stream of one device.
struct DeviceStream {
  int device;
  void* stream;
};

// As order_after(), of streams on different devices. Neither may be captured.
FL_EXPORT void order_across(const DeviceStream& later, const DeviceStream& earlier);

// Copies between the memory of two devices on the stream `to`, after what is on `from`, where what comes next waits for
// the copy. Straight from one to the other where they can reach each other's memory, else through host memory.
FL_EXPORT void copy_across(const DeviceStream& to, void* target, const DeviceStream& from, const void* source,
                           std::size_t bytes);

// The device whose memory `data` points into, or -1 if that is none.
FL_EXPORT int device_of(const void* data);

// ---- what the benchmarks and GPU tests use (bindings: fastlinalg._core)
class FL_EXPORT DeviceBuffer {  // device memory of the library's pool
 public:
  DeviceBuffer(std::size_t bytes, int device);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void upload(const void* host, std::size_t bytes, std::size_t offset);
  void download(void* host, std::size_t bytes, std::size_t offset) const;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  void* data_;
  std::size_t bytes_;
  int device_;
};

// What the driving thread of a pipeline has seen, and how many microseconds after its begin: a load "sent" or
// "arrived", a step "queued", "computed" or "awaited" by the stores that follow, a store "fetched", "filled" or
// "emptied" (docs/host_pipeline.md), the "end" of the call.
struct TraceEvent {
  const char* what;
  std::size_t index;
  double us;
};
FL_EXPORT std::vector<TraceEvent> trace_of(const std::function<void()>& call);

// Captures `launches` calls of work(stream) into a CUDA graph, replays it `replays` times after a warm-up and returns
// the microseconds per call of each replay, from CUDA events.
FL_EXPORT std::vector<double> time_in_graph(int device, int launches, int replays,
                                            const std::function<void(void*)>& work);

// Microseconds for so many bytes from and to pinned host memory: in, out, and both at the same time; medians.
struct LinkTimes {
  double in_us = 0, out_us = 0, both_us = 0;
};
FL_EXPORT LinkTimes time_link(int device, std::size_t in_bytes, std::size_t out_bytes, int repeats);

}  // namespace fl::cuda
