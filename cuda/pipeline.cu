#include "pipeline.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "check.h"
#include "copy_workers.h"
#include "device_guard.h"
#include "link.h"
#include "memory_pool.h"
#include "panel_driver.h"
#include "placement.h"
#include "ring.h"
#include "streams.h"
#include "thread_pool.h"
#include "threading.h"

namespace fl::cuda {
namespace {

constexpr std::size_t MiB = std::size_t(1) << 20;
constexpr std::size_t bytes_of(int64_t floats) { return std::size_t(floats) * sizeof(float); }

// ---------------------------------------------------------------- sizes
// Measured with copies of NumPy arrays on an H200 host (docs/host_pipeline.md): the link wants copies of several MiB, a
// small call needs many of them, and a ring of fewer than 8 slots, or of 64 MiB and more, loses.
struct RingSizes {
  std::size_t in_slot, out_slot;  // bytes
  int in_blocks, out_blocks;
};

std::size_t power_of_two(std::size_t least, std::size_t wanted, std::size_t most) {
  std::size_t size = least;
  while (2 * size <= std::min(wanted, most)) size *= 2;
  return size;
}

int blocks_for(std::size_t slot, std::size_t bytes) {
  const std::size_t ring = std::min(std::max(32 * MiB, 8 * slot), std::max(bytes, MiB));
  return int((ring + PinnedBlocks::block_bytes - 1) / PinnedBlocks::block_bytes);
}

RingSizes ring_sizes(const Operands& on) {
  std::size_t in = on.output.read ? device_bytes(on.output.host) : 0;
  for (const Input& input : on.inputs) in += device_bytes(input.host);
  const std::size_t out = device_bytes(on.output.host);
  RingSizes sizes{power_of_two(MiB, in / 32, 8 * MiB), power_of_two(MiB, out / 8, 8 * MiB), 0, 0};
  sizes.in_blocks = blocks_for(sizes.in_slot, in);
  sizes.out_blocks = blocks_for(sizes.out_slot, out);
  return sizes;
}

// With fewer blocks than wanted, since other calls have them: smaller slots, so that there are enough of them.
void shrink(RingSizes& sizes, int blocks) {
  if (blocks >= sizes.in_blocks + sizes.out_blocks) return;
  sizes.out_blocks = std::max(1, blocks * sizes.out_blocks / (sizes.in_blocks + sizes.out_blocks));
  sizes.in_blocks = blocks - sizes.out_blocks;
  const auto slot = [](int count) { return std::size_t(count) * PinnedBlocks::block_bytes / 8; };
  sizes.in_slot = power_of_two(MiB, slot(sizes.in_blocks), sizes.in_slot);
  sizes.out_slot = power_of_two(MiB, slot(sizes.out_blocks), sizes.out_slot);
}

int thread_count(const Operands& on) {
  constexpr std::size_t bytes_per_thread = MiB / 4;
  constexpr int most_threads = 16;  // the link is full before
  const auto wanted = std::min<std::size_t>(device_bytes(on) / bytes_per_thread + 1, most_threads);
  return std::min(num_threads(), int(wanted));
}

// ---------------------------------------------------------------- copies for the workers
std::vector<Packing> copies_in(const PanelCopies& copies, const Ring& ring) {
  std::vector<Packing> result;
  result.reserve(copies.loads.size());
  for (const LoadCopy& load : copies.loads)
    if (!load.direct) result.push_back({load.host, load.piece, ring[result.size()], load.width});
  return result;
}
std::vector<Unpacking> copies_out(const PanelCopies& copies, const Ring& ring) {
  std::vector<Unpacking> result;
  result.reserve(copies.stores.size());
  for (const StoreCopy& store : copies.stores)
    if (!store.direct) result.push_back({ring[result.size()], store.pitch, store.host, store.piece});
  return result;
}

// The pages of a result that may be fresh. Those of a view are left alone: what lies between its rows is not ours to touch.
std::pair<void*, std::size_t> fresh_pages(const Lines<float>& output, bool direct) {
  const bool contiguous = output.step == 1 && (output.lines == 1 || output.line_stride == output.length) &&
                          (output.batch == 1 || output.bs == output.lines * output.length);
  const std::size_t size = bytes_of(output.total() * output.length);
  if (!contiguous || direct || size < MiB) return {nullptr, 0};
  return {output.data, size};
}

// The caller drives the device and the threads of the pool copy. A busy pool gives none: then the caller does both.
template <class Args>
void drive(PanelDriver<Args>& driver, CopyWorkers& workers, int threads) {
  std::exception_ptr failure;
  bool driven = false;
  auto task = [&](int64_t, int slot) {
    if (slot > 0) return workers.work(slot - 1, threads - 1);
    if (std::exchange(driven, true)) return;
    try {
      driver.drive();
    } catch (...) {
      failure = std::current_exception();
    }
    workers.stop();
  };
  parallel_for(threads, threads, task);
  if (failure) std::rethrow_exception(failure);
}

template <class Args>
std::size_t workspace_bytes(const PanelPlan<Args>& plan, const Args& args) {
  std::size_t bytes = 0;
  for (const PanelStep<Args>& step : plan.steps)
    bytes = std::max(bytes, step.row->workspace(sub_problem(args, step.block)));
  return bytes;
}

}  // namespace

template <class Args>
void run_pipeline(const PanelPlan<Args>& plan, const Args& host, const Args& layout, int device, cudaStream_t stream) {
  const AllowDuringCapture allow;
  Args args = layout;
  const Operands on = operands(host, args);
  RingSizes sizes = ring_sizes(on);
  const StreamLease in(device, nullptr), out(device, nullptr);
  const PinnedBlocks blocks(device, sizes.in_blocks + sizes.out_blocks, 2);
  shrink(sizes, blocks.count());
  measure_link(device, blocks[0], in.get(), out.get());
  const PoolBuffer memory(device, device_bytes(on) + workspace_bytes(plan, layout), stream);
  char* const workspace = place(on, memory.data());

  PanelCopies copies;
  cut_up(plan, on, {int64_t(sizes.in_slot / sizeof(float)), int64_t(sizes.out_slot / sizeof(float))}, copies);
  const Lines<float>& output = on.output.host;
  if (copies.clear_output) FL_CUDA(cudaMemsetAsync(*on.output.device, 0, device_bytes(output), stream));
  const Ring in_ring(blocks, 0, sizes.in_blocks, sizes.in_slot);
  const Ring out_ring(blocks, sizes.in_blocks, sizes.out_blocks, sizes.out_slot);
  const bool direct_output = !copies.stores.empty() && copies.stores.front().direct;
  const auto [fresh, fresh_bytes] = fresh_pages(output, direct_output);
  CopyWorkers workers(copies_in(copies, in_ring), copies_out(copies, out_ring), Stores::past_cache, fresh, fresh_bytes);

  const PanelStreams streams{in.get(), stream, out.get()};
  PanelDriver<Args> driver(plan, args, device, workspace, copies, workers, in_ring, out_ring, streams);
  FinishOnError finish{streams.in, streams.compute, streams.out};
  drive(driver, workers, thread_count(on));
  finish.disarm();
}

#define FL_INSTANTIATE(Args) \
  template void run_pipeline(const PanelPlan<Args>&, const Args&, const Args&, int, cudaStream_t);
FL_INSTANTIATE(SgemmArgs)
FL_INSTANTIATE(SgemvArgs)
FL_INSTANTIATE(TransposeArgs)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
