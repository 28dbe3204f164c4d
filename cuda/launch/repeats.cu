#include "cuda/launch/repeats.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>

#include "cuda/launch/graph.h"
#include "cuda/launch/launch_row.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/per_device.h"

namespace fl::cuda {
namespace {

// As for plans (kept_run.cu): recording takes what four launches lose against a graph.
constexpr int calls_before_graph = 4;
// In a row of launches a kernel begins while the one before it ends, in a row of graphs it does not. Microseconds a
// call with the wait at the end of a thousand, launches and graphs: products of 32 4.09 and 3.78, of 64 4.31 and 3.97,
// of 96 4.58 and 4.48, of 128 4.50 and 4.67, of 192 4.29 and 4.87; sgemv, transposes of 192 4.3 and 2.9, 4.6 and 3.3.
constexpr double most_steps = 1 << 20, most_elements = 1 << 15;

template <class Args>
struct Call {
  const Kernel<Args>* kernel = nullptr;
  cudaStream_t stream = nullptr;
  Args args{};
  int count = 0;
  GraphExec graph;
};

// A graph runs once at a time: it would make streams wait for each other, so each has graphs of its own.
template <class Args>
struct Calls {
  std::mutex mutex;  // held while a graph is started too, so that nobody waits for it: who finds it taken launches
  std::array<Call<Args>, 64> places;
};

std::size_t place_of(std::initializer_list<const float*> operands, std::size_t places) {
  uint64_t mixed = 0;
  for (const float* operand : operands) mixed = (mixed ^ reinterpret_cast<uintptr_t>(operand)) * 0x9E3779B97F4A7C15u;
  return std::size_t(mixed >> 32) % places;
}
std::size_t place_of(const SgemmArgs& p, std::size_t places) {
  return place_of({p.a.data, p.b.data, p.c.data}, places);
}
std::size_t place_of(const SgemvArgs& p, std::size_t places) {
  return place_of({p.a.data, p.x.data, p.y.data}, places);
}
std::size_t place_of(const TransposeArgs& p, std::size_t places) { return place_of({p.a.data, p.b.data}, places); }

// The legacy stream may not be asked while a blocking stream is captured: then a launch says what is wrong.
bool outside_captures(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) return status == cudaStreamCaptureStatusNone;
  static_cast<void>(cudaGetLastError());
  return false;
}

bool is_short(const SgemmArgs& p) { return double(p.m) * double(p.n) * double(p.k) * double(p.batch) <= most_steps; }
bool is_short(const SgemvArgs& p) { return double(p.m) * double(p.n) * double(p.batch) <= most_elements; }
bool is_short(const TransposeArgs& p) { return double(p.m) * double(p.n) * double(p.batch) <= most_elements; }

template <class Args>
void forget_all(int device) {
  auto& calls = per_device<Calls<Args>>(device);
  const std::lock_guard lock(calls.mutex);
  for (Call<Args>& call : calls.places) {
    forget(call.graph);
    call.kernel = nullptr;
  }
}

}  // namespace

template <class Args>
bool start_repeated(const Kernel<Args>& kernel, const Args& args, int device, cudaStream_t stream) {
  if (stream == cudaStreamPerThread || !is_short(args)) return false;  // the former is one name for many streams
  auto& calls = per_device<Calls<Args>>(device);
  const std::unique_lock lock(calls.mutex, std::try_to_lock);
  if (!lock) return false;
  Call<Args>& call = calls.places[place_of(args, calls.places.size())];
  if (call.kernel != &kernel || call.stream != stream || !(call.args == args)) {
    forget(call.graph);
    call.kernel = &kernel, call.stream = stream, call.args = args, call.count = 1;
    return false;
  }
  if ((call.count == calls_before_graph && !call.graph) || !outside_captures(stream)) return false;
  if (call.count < calls_before_graph && ++call.count == calls_before_graph && kernel.workspace(args) == 0)
    call.graph = try_to_record(device, [&](cudaStream_t on) { launch_row(kernel, args, device, nullptr, on); });
  return start(call.graph, stream);
}

void trim(int device) {
  require_device(device);
  const DeviceGuard guard(device);
  forget_all<SgemmArgs>(device);
  forget_all<SgemvArgs>(device);
  forget_all<TransposeArgs>(device);
  pool_trim(device);
}

#define FL_INSTANTIATE(Args) template bool start_repeated(const Kernel<Args>&, const Args&, int, cudaStream_t);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
