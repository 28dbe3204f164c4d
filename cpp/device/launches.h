// Kernels on operands in device memory: once, and again and again.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/triangle_copy.h"
#include "plan/prepacked_operand.h"
#include "table/registry.h"

namespace fl::cuda {

// What a kernel has left at the start of its workspace.
struct StatusWords {
  unsigned words[2] = {};
  bool read = false;  // not during a capture, nor if there is no workspace
};

// Runs one kernel on operands in device memory, asynchronously on `stream`; null is the library's own stream of the
// device, on which calls run in order, DeviceBuffer's copies included. The workspace comes from the pool; with `left`
// the call waits for the kernel and reads what it has left there.
template <class Args>
void run_on_device_operands(const Kernel<Args>& kernel, const Args& args, int device, void* stream,
                            StatusWords* left = nullptr);

// The same of several kernels, in any order and beside each other: none writes what another one uses. `stream` goes on
// when all of them are done. The longest come first. OutOfMemory comes before anything is queued.
template <class Args>
struct OneLaunch {
  const Kernel<Args>* kernel;
  Args args;
  bool operator==(const OneLaunch&) const = default;
};
using AnyLaunch = std::variant<OneLaunch<SgemmArgs>, OneLaunch<SgemvArgs>>;
void run_on_device_operands(std::vector<AnyLaunch> launches, int device, void* stream);
// The same again and again: what a plan of a list keeps on a device, as CapturedRun.
class CapturedGroup {
 public:
  CapturedGroup(std::vector<AnyLaunch> launches, int device);
  ~CapturedGroup();
  void run(void* stream);
  std::size_t workspace_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The kernels of the products take float32 matrices in C or F order whose lines follow one another. For other operands
// in device memory: the layout for dispatch, in which each operand that has to be copied first is a null pointer with
// the strides of its packed copy; nothing if there is none.
template <class Args>
std::optional<Args> packed_layout(const Args& args);

// The same on packed copies of the operands that `layout` says, made and brought back on the stream.
template <class Args>
void run_on_packed_operands(const Kernel<Args>& kernel, const Args& args, const Args& layout, int device, void* stream,
                            StatusWords* left = nullptr);

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

}  // namespace fl::cuda
