// Kernels of a list of products, which run beside each other on streams of the library's.
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/launch_group.h"
#include "cuda/launch/graph.h"
#include "cuda/launch/graph_cache.h"
#include "cuda/launch/lasting_memory.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/launch/operands.h"
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
// The cache keeps the launches of a list, and a node of its graph for each.
constexpr std::size_t most_recorded = 1024;

// Streams that begin where the call's own, the first, is now: `count` at once, others up to `most` when they are asked
// for. It goes on when they are done. A call that fails waits for all of them.
class ForkedStreams {
 public:
  ForkedStreams(int device, cudaStream_t stream, std::size_t count, std::size_t most)
      : device_(device), event_(device), streams_{stream} {
    if (most < 2) return;
    finish_.add(stream);
    FL_CUDA(cudaEventRecord(event_.get(), stream));
    static_cast<void>((*this)[count - 1]);
  }
  cudaStream_t operator[](std::size_t i) {
    while (streams_.size() <= i) {
      streams_.push_back(leases_.emplace_back(device_, nullptr).get());
      FL_CUDA(cudaStreamWaitEvent(streams_.back(), event_.get(), 0));
      finish_.add(streams_.back());
    }
    return streams_[i];
  }
  void join() {
    for (std::size_t i = 1; i < streams_.size(); ++i) {
      FL_CUDA(cudaEventRecord(event_.get(), streams_[i]));
      FL_CUDA(cudaStreamWaitEvent(streams_[0], event_.get(), 0));
    }
    finish_.disarm();
  }

 private:
  const int device_;
  const EventLease event_;
  std::deque<StreamLease> leases_;
  std::vector<cudaStream_t> streams_;
  FinishOnError finish_;
};

struct Placed {
  std::size_t workspace;  // bytes
  bool grouped;           // one launch with others
  std::size_t stream = 0;
};

// A second kernel would have to wait for the first one of all.
template <class Args>
Placed placed(const OneLaunch<Args>& one) {
  const std::size_t workspace = one.kernel->workspace(one.args);
  bool grouped = one.kernel->traits.grouped && workspace == 0;
  if constexpr (requires { one.args.addend; }) grouped = grouped && !one.args.addend.data;
  return {workspace, grouped};
}

// Which stream each launch is on, and where the workspace of each stream begins. What is grouped is on the last one, or
// begins there.
struct Streams {
  std::vector<Placed> of_launch;
  std::vector<std::size_t> begin;
  std::size_t bytes = 0;

  Streams(std::span<const AnyLaunch> launches, std::size_t most) {
    std::size_t alone = 0;
    for (const AnyLaunch& any : launches) {
      of_launch.push_back(std::visit([](const auto& one) { return placed(one); }, any));
      alone += !of_launch.back().grouped;
    }
    const std::size_t count = std::min(alone + (alone < launches.size()), most);
    std::vector<std::size_t> each(count);
    std::size_t next = 0;
    for (Placed& one : of_launch) {
      one.stream = one.grouped ? count - 1 : one.workspace > most_beside ? 0 : next++ % count;
      each[one.stream] = std::max(each[one.stream], aligned(one.workspace));
    }
    begin.resize(count);
    for (std::size_t i = 0; i < count; ++i) begin[i] = std::exchange(bytes, bytes + each[i]);
  }
  std::size_t count() const { return begin.size(); }
};

class GroupLauncher {
 public:
  GroupLauncher(std::span<const AnyLaunch> launches, const Streams& streams, int device)
      : launches_(launches), streams_(streams), device_(device) {}

  // `apart`: each class of what is grouped has a stream.
  void launch_all(char* workspace, ForkedStreams& on, bool repeated, bool apart) {
    group_.kept.reserve(launches_.size());
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const Placed& place = streams_.of_launch[i];
      group_.product = i;
      named_after(i, [&](const auto& one) {
        launch_kernel(*one.kernel, one.args, device_, workspace + streams_.begin[place.stream], on[place.stream],
                      nullptr, repeated, place.grouped ? &group_ : nullptr);
      });
    }
    if (!group_.kept.empty()) launch_kept(on, apart);
  }

 private:
  // launch(the launch i), whose kernel an error names.
  template <class Launch>
  void named_after(std::size_t i, Launch&& launch) {
    std::visit(
        [&](const auto& one) {
          try {
            launch(one);
          } catch (const CudaError& error) {
            throw named(error, *one.kernel, "cuda:" + std::to_string(device_));
          }
        },
        launches_[i]);
  }

  void launch_kept(ForkedStreams& on, bool apart) {
    std::size_t stream = streams_.count() - 1;
    std::vector<const KeptLaunch*> all;
    for (const KeptLaunch& kept : group_.kept) all.push_back(&kept);
    std::ranges::stable_sort(all, std::less<>(), &KeptLaunch::launch);
    for (std::span<const KeptLaunch* const> left = all; !left.empty();) {
      const KeptLaunch& first = *left.front();
      const auto end = std::ranges::find_if(left, [&](const auto* other) { return other->launch != first.launch; });
      const auto alike = left.first(std::size_t(end - left.begin()));
      named_after(first.product, [&](const auto&) {
        first.launch(alike, context_on(device_, on[stream]));
        check_launch();
      });
      left = left.subspan(alike.size());
      if (apart) stream = (stream + 1) % most_streams;
    }
  }

  const std::span<const AnyLaunch> launches_;
  const Streams& streams_;
  const int device_;
  LaunchGroup group_;
};

// The streams that a capture has forked are borrowed until it has ended. In a graph of the library's own, `recorded`,
// more of them cost the host nothing: short kernels that follow one another are most of the time of a short list.
void launch_all(std::span<const AnyLaunch> launches, const Streams& streams, char* workspace, int device,
                cudaStream_t queue, bool repeated, bool recorded, std::optional<ForkedStreams>& forked) {
  forked.emplace(device, queue, streams.count(), recorded ? most_streams : streams.count());
  GroupLauncher(launches, streams, device).launch_all(workspace, *forked, repeated, recorded);
  forked->join();
}

}  // namespace

// What is captured by somebody else is captured in a row: a stream of the library's would stay in that capture.
void run_on_device_operands(std::vector<AnyLaunch> launches, int device, void* stream) {
  const DeviceGuard guard(device);
  const cudaStream_t queue = stream_of(stream, device);
  const bool captured = capturing(device, queue);
  const Streams streams(launches, captured ? 1 : most_streams);
  const PoolBuffer workspace(device, streams.bytes, queue);
  const ListCall call{queue, workspace.data(), std::move(launches)};
  std::optional<ForkedStreams> forked;
  const auto launch = [&](cudaStream_t on) {
    launch_all(call.launches, streams, workspace.data(), device, on, false, on != queue, forked);
  };
  const bool recordable = !captured && call.launches.size() <= most_recorded;
  if (!recordable || !start_cached_graph(call, device, launch)) launch(queue);
}

struct CapturedGroup::State {
  int device;
  std::vector<AnyLaunch> launches;
  Streams side_by_side, in_a_row;
  LastingMemory memory;
  RepeatedWork repeated{device};

  void launch(cudaStream_t queue, const Streams& streams, std::optional<ForkedStreams>& forked, bool recorded) {
    launch_all(launches, streams, memory.data(), device, queue, true, recorded, forked);
  }
};

CapturedGroup::CapturedGroup(std::vector<AnyLaunch> launches, int device) {
  Streams side_by_side(launches, most_streams), in_a_row(launches, 1);
  const std::size_t bytes = std::max(side_by_side.bytes, in_a_row.bytes);
  state_.reset(new State{.device = device,
                         .launches = std::move(launches),
                         .side_by_side = std::move(side_by_side),
                         .in_a_row = std::move(in_a_row),
                         .memory = {device, bytes}});
}

CapturedGroup::~CapturedGroup() = default;

void CapturedGroup::run(void* stream) {
  State& state = *state_;
  const DeviceGuard guard(state.device);
  const cudaStream_t queue = stream_of(stream, state.device);
  std::optional<ForkedStreams> forked;
  if (capturing(state.device, queue)) return state.launch(queue, state.in_a_row, forked, false);
  state.memory.use(queue, [&] {
    state.repeated.run(queue, [&](cudaStream_t on) { state.launch(on, state.side_by_side, forked, on != queue); });
  });
}

std::size_t CapturedGroup::workspace_bytes() const {
  return std::max(state_->side_by_side.bytes, state_->in_a_row.bytes);
}

}  // namespace fl::cuda
