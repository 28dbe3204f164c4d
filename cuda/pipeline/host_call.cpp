// One call on operands in host memory.
#include <algorithm>
#include <deque>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/operations.h"
#include "core/text.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/launch/operands.h"
#include "cuda/pipeline/copy_queue.h"
#include "cuda/pipeline/pipeline.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/ring.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"
#include "device/host_calls.h"
#include "transfer/device_shares.h"
#include "transfer/out_of_core_plan.h"

namespace fl::cuda {
namespace {

// Up to here a call is one copy in, one launch and one copy out: nothing would be gained by waking threads.
constexpr std::size_t small_call = std::size_t(1) << 20;  // bytes

// The operands are packed as they will lie on the device, so that one copy takes them all.
template <class Args>
void run_small(const PanelPlan<Args>& plan, const Args& host, const Args& layout, int device, cudaStream_t stream) {
  const AllowDuringCapture allow;  // as run_pipeline() does: another thread's capture is no reason to refuse a call
  Args args = layout;
  const Operands on = operands(host, args);
  const Kernel<Args>& kernel = *plan.steps.front().kernel;
  const PinnedBlocks blocks(device, 1, 1);
  const PoolBuffer memory(device, device_bytes(on) + kernel.workspace(layout), stream);
  FinishOnError finish{stream};
  char* const workspace = place(on, memory.data());
  const auto staged = [&](const void* data) {
    return reinterpret_cast<float*>(blocks[0] + (static_cast<const char*>(data) - memory.data()));
  };
  for (const Input& input : on.inputs)
    if (!input.host.empty())
      pack(input.host, {0, input.host.total(), 0, input.host.length}, staged(*input.device), input.host.ld);
  const Lines<float>& output = on.output.host;
  const Piece all{0, output.total(), 0, output.length};
  float* const result = *on.output.device;
  const bool padded = output.ld != output.length;
  // What is not read is sent only for its padding, which comes back with the result: it has to hold something.
  if (on.output.read) pack(output, all, staged(result), output.ld);
  const char* const end = on.output.read || padded ? workspace : reinterpret_cast<char*>(result);
  if (end != memory.data())
    FL_CUDA(
        cudaMemcpyAsync(memory.data(), blocks[0], std::size_t(end - memory.data()), cudaMemcpyHostToDevice, stream));
  launch_kernel(kernel, args, device, workspace, stream);
  FL_CUDA(cudaMemcpyAsync(staged(result), result, device_bytes(output), cudaMemcpyDeviceToHost, stream));
  FL_CUDA(cudaStreamSynchronize(stream));
  finish.disarm();
  unpack(staged(result), output.ld, output, all, Stores::cached);
}

template <class Args>
bool is_small(const PanelPlan<Args>& plan, const Args& host, const Args& layout) {
  Args args = layout;
  return plan.steps.size() == 1 && device_bytes(operands(host, args)) <= small_call;
}

// The devices of a call, and the streams of its products on each.
struct Places {
  std::span<const int> devices;
  std::vector<cudaStream_t> streams;
};

template <class Args>
void run_whole(const PanelPlan<Args>& plan, const Args& host, const Args& layout, const Places& places) {
  if (is_small(plan, host, layout))
    return run_small(plan, host, layout, places.devices.front(), places.streams.front());
  std::vector<DeviceShare<Args>> shares;
  if (const int devices = int(places.devices.size()); devices > 1)
    shares = share_out(plan, layout, devices, connect_pools(places.devices));
  else shares.push_back({plan, {}, {}});
  run_pipelines<Args>(shares, host, layout, places.devices, places.streams);
}

std::string text(std::span<const int> devices) {
  return joined(devices, ",", [](int device) { return "cuda:" + std::to_string(device); });
}

[[noreturn]] void nothing_fits(const Places& places, std::size_t needed, std::size_t limit) {
  throw OutOfMemory(text(places.devices) + " cannot hold even a small part of the call: the whole takes " +
                    bytes_text(needed) + ", and " + bytes_text(limit) +
                    " are there, or are the limit, together with what is in use");
}

template <class Args>
void log_parts(const Log& log, const Places& places, const Args& layout, const OutOfCorePlan<Args>& plan,
               std::size_t needed) {
  log(text(places.devices) + " in " + std::to_string(plan.tiles.size()) + " parts of at most " +
      sizes_text(sub_problem(layout, largest_tile(plan.shape))) + ", which take " + std::to_string(plan.shape.bytes) +
      " bytes of its memory; the whole takes " + std::to_string(needed));
}

// What each of the devices may have.
std::size_t memory_of(const Places& places) {
  std::size_t least = SIZE_MAX;
  for (const int device : places.devices) {
    const std::size_t limit = memory_limit(device);
    least = std::min(least, limit ? limit : device_info(device).memory);
  }
  return least;
}

// What does not fit on a device is computed tile by tile. Where others have part of the memory there is less than that:
// then in half of it, and so on. No attempt that fails for memory has written anything.
template <class Args>
void run_whole_or_in_parts(const PanelPlan<Args>& plan, const Args& host, const Args& layout, const Places& places,
                           const Log* log) {
  Args args = layout;
  const std::size_t needed = device_bytes(operands(host, args)) + workspace_bytes(plan, layout);
  const std::size_t all = memory_of(places);
  std::exception_ptr without_memory;
  if (needed <= all) try {
      return run_whole(plan, host, layout, places);
    } catch (const OutOfMemory&) {
      without_memory = std::current_exception();
    }
  for (std::size_t memory = needed <= all ? needed / 2 : all;; memory /= 2) {
    const OutOfCorePlan<Args> tiles = plan_out_of_core(layout, memory, plan.kernel_for);
    if (tiles.tiles.empty() && without_memory) std::rethrow_exception(without_memory);
    if (tiles.tiles.empty()) nothing_fits(places, needed, all);
    if (log) log_parts(*log, places, layout, tiles, needed);
    try {
      const std::vector<OutOfCorePlan<Args>> shares = share_out(tiles, layout, int(places.devices.size()));
      return run_out_of_core<Args>(shares, plan.kernel_for, host, places.devices, places.streams);
    } catch (const OutOfMemory&) {
      without_memory = std::current_exception();
    }
  }
}

void refuse_capture(void* stream) {
  if (is_capturing(static_cast<cudaStream_t>(stream)))
    throw InvalidValue(
        "a call on arrays in host memory waits for its result and cannot be captured in a CUDA graph: "
        "use device arrays");
}

}  // namespace

// What is one step is done by one device.
template <class Args>
void run_on_host_operands(const PanelPlan<Args>& plan, const Args& host, const Args& layout,
                          std::span<const int> all_devices, void* stream, const Log* log) {
  const std::span<const int> devices = all_devices.first(std::min(all_devices.size(), plan.steps.size()));
  const DeviceGuard guard(devices.front());
  if (stream) refuse_capture(stream);
  Args args = layout;
  const bool is_short = device_bytes(operands(host, args)) <= short_call;
  std::deque<StreamLease> leases;
  Places places{devices, {}};
  for (const int device : devices) {
    const DeviceGuard there(device);
    const StreamLease& lease = leases.emplace_back(device, stream, is_short ? Urgency::urgent : Urgency::normal);
    places.streams.push_back(lease.get());
  }
  try {
    run_whole_or_in_parts(plan, host, layout, places, log);
  } catch (const CudaError& error) {
    throw named(error, *plan.steps.front().kernel, text(devices));
  }
}

#define FL_INSTANTIATE(Args)                                                                                        \
  template void run_on_host_operands(const PanelPlan<Args>&, const Args&, const Args&, std::span<const int>, void*, \
                                     const Log*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
