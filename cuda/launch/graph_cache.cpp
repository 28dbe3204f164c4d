#include "cuda/launch/graph_cache.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/call_cache.h"
#include "core/operations.h"
#include "cuda/launch/graph.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/per_device.h"
#include "device/device_memory.h"

namespace fl::cuda {
namespace {

// In a row of launches a kernel begins while the one before it ends, in a row of graphs it does not. Microseconds a
// call with the wait at the end of a thousand, launches and graphs: products of 32 4.09 and 3.78, of 64 4.31 and 3.97,
// of 96 4.58 and 4.48, of 128 4.50 and 4.67, of 192 4.29 and 4.87; sgemv, transposes of 192 4.3 and 2.9, 4.6 and 3.3.
constexpr double most_steps = 1 << 20, most_elements = 1 << 15;

// A graph holds the addresses themselves, so they are compared whole, unlike those of a CallKey. It runs once at a
// time: one graph would make streams wait for each other, so each has graphs of its own.
template <class Args>
struct GraphKey {
  const Kernel<Args>* kernel = nullptr;
  cudaStream_t stream = nullptr;
  Args args{};
  bool operator==(const GraphKey&) const = default;
};

// The operands alone decide the place in the cache: calls on the same ones take turns there.
template <class Args>
std::size_t hash(const Args& args) {
  uint64_t hash = 0;
  for_each_operand(args, [&](const auto& view) { hash = mixed(hash, reinterpret_cast<uintptr_t>(view.data)); });
  return hash >> 32;
}

struct CachedGraph {
  CachedGraph() = default;
  CachedGraph(CachedGraph&&) = default;
  CachedGraph& operator=(CachedGraph&& other) noexcept {
    forget(graph);
    calls = other.calls, graph = std::move(other.graph);
    return *this;
  }
  int calls = 1;
  GraphExec graph;
};

template <class Key>
struct GraphCache {
  std::mutex mutex;  // held while a graph is started too, so that nobody waits for it: who finds it taken launches
  std::array<CallCache<Key, CachedGraph, 1>, 64> places;
};

template <class Args>
bool is_short(const Args& args) {
  return step_count(args) <= (std::is_same_v<Args, SgemmArgs> ? most_steps : most_elements);
}

// launch(on) queues the call, if that can be recorded.
template <class Key, class Launch>
bool start_cached(const Key& key, std::size_t hash, bool recordable, int device, Launch&& launch) {
  if (key.stream == cudaStreamPerThread) return false;  // one name for many streams
  auto& cache = per_device<GraphCache<Key>>(device);
  const std::unique_lock lock(cache.mutex, std::try_to_lock);
  if (!lock) return false;
  auto& place = cache.places[hash % cache.places.size()];
  CachedGraph* const known = place.find(key);
  if (!known) {
    place.keep(key, {});
    return false;
  }
  if ((known->calls == runs_before_graph && !known->graph) || !outside_captures(key.stream)) return false;
  if (known->calls < runs_before_graph && ++known->calls == runs_before_graph && recordable)
    known->graph = try_to_record(device, launch);
  return start(known->graph, key.stream);
}

template <class Key>
void forget_all(int device) {
  auto& cache = per_device<GraphCache<Key>>(device);
  const std::lock_guard lock(cache.mutex);
  for (auto& place : cache.places) place.clear();
}

}  // namespace

template <class Args>
bool start_cached_graph(const Kernel<Args>& kernel, const Args& args, int device, cudaStream_t stream) {
  return is_short(args) &&
         start_cached(GraphKey<Args>{&kernel, stream, args}, hash(args), kernel.workspace(args) == 0, device,
                      [&](cudaStream_t on) { launch_kernel(kernel, args, device, nullptr, on); });
}

bool start_cached_graph(const ListCall& call, int device, const std::function<void(cudaStream_t)>& launch) {
  const std::size_t place = std::visit([](const auto& first) { return hash(first.args); }, call.launches.front());
  return start_cached(call, place, true, device, launch);
}

void trim(int device) {
  const DeviceGuard guard(device);
  for_each_operation([&]<class Args>() { forget_all<GraphKey<Args>>(device); });
  forget_all<ListCall>(device);
  pool_trim(device);
}

#define FL_INSTANTIATE(Args) template bool start_cached_graph(const Kernel<Args>&, const Args&, int, cudaStream_t);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
