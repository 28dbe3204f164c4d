#include "cuda/pipeline/pipeline_run.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/operations.h"
#include "cuda/pipeline/copy_workers.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/link.h"
#include "cuda/runtime/memory_pool.h"
#include "runtime/call_watch.h"
#include "runtime/threading.h"

namespace fl::cuda {
namespace {

constexpr std::size_t MiB = std::size_t(1) << 20;
constexpr std::size_t bytes_of(int64_t floats) { return std::size_t(floats) * sizeof(float); }

// ---------------------------------------------------------------- sizes
// Measured on an H200 host (docs/notes/host_pipeline.md): the link wants copies of several MiB, a small call needs many
// of them, and a ring of fewer than 8 slots, or of more than 64 MiB, loses. The rings of all devices, of one call or of
// several, share the processor's cache.
std::size_t power_of_two(std::size_t least, std::size_t wanted, std::size_t most) {
  std::size_t size = least;
  while (2 * size <= std::min(wanted, most)) size *= 2;
  return size;
}

int blocks_for(std::size_t slot, std::size_t bytes) {
  const std::size_t ring = std::min(std::max(32 * MiB, 8 * slot), std::max(bytes, MiB));
  return int((ring + PinnedBlocks::block_bytes - 1) / PinnedBlocks::block_bytes);
}

RingSizes ring_sizes(std::size_t in, std::size_t out, std::size_t devices) {
  const std::size_t most = 8 * MiB / devices;
  RingSizes sizes{power_of_two(MiB / 2, in / 32, most), power_of_two(MiB, out / 8, most), 0, 0};
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
  sizes.in_slot = power_of_two(MiB / 2, slot(sizes.in_blocks), sizes.in_slot);
  sizes.out_slot = power_of_two(MiB, slot(sizes.out_blocks), sizes.out_slot);
}

int thread_count(std::size_t bytes) {
  constexpr std::size_t bytes_per_thread = MiB / 4;
  constexpr int most_threads = 15;  // the link is full before
  const auto wanted = std::min<std::size_t>(bytes / bytes_per_thread + 1, most_threads);
  return std::min(num_threads(), int(wanted));
}

// Two-dimensional copies from or to pinned memory: 26 GB/s each way by 1 KiB of a line, 33 by 4 KiB, 46 from 8 KiB on
// (H100s, lines of 64 KiB). Through the rings it takes as many threads as this to be as fast as the slower of them.
constexpr int threads_for_short_lines = 6;
constexpr int64_t long_line = (8 << 10) / sizeof(float);

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

// The pages of a result that may be fresh. Those of a view are left alone: what lies between its rows is not ours.
std::pair<void*, std::size_t> fresh_pages(const Lines<float>& output, const std::vector<StoreCopy>& stores) {
  const bool contiguous = output.step == 1 && (output.lines == 1 || output.line_stride == output.length) &&
                          (output.batch == 1 || output.bs == output.lines * output.length);
  const std::size_t size = bytes_of(output.total() * output.length);
  const bool pinned = std::any_of(stores.begin(), stores.end(), [](const StoreCopy& store) { return store.direct; });
  if (!contiguous || pinned || size < MiB) return {nullptr, 0};
  return {output.data, size};
}

// Whoever catches OutOfMemory tries again with other cuts, which must not add to a result that is there in part.
CudaError out_of_memory_halfway(const OutOfMemory& error) {
  return CudaError(cudaErrorMemoryAllocation, cudaGetErrorName(cudaErrorMemoryAllocation),
                   std::string(error.what()) + "; the result has been written in part");
}

// The device memory that a copy of 16-bit numbers goes to, 0 if there is none.
std::size_t halves_bytes(const PanelCopies& copies) {
  int64_t most = 0;
  for (const LoadCopy& load : copies.loads)
    if (load.host->stored.in_16_bits()) most = std::max(most, load.width * load.piece.lines);
  return sizeof(uint16_t) * std::size_t(most);
}

// A part under way.
template <class Args>
class ActivePart {
 public:
  ActivePart(const DevicePart<Args>& part, bool passes_on, const std::shared_ptr<FreshPages>& fresh)
      : in_ring_(part.run.in_ring()),
        out_ring_(part.run.out_ring()),
        streams_(part.run.streams()),
        halves_(part.run.device(), halves_bytes(part.work.copies), streams_.compute),
        copies_(std::make_shared<HostCopies>(copies_in(part.work.copies, in_ring_),
                                             copies_out(part.work.copies, out_ring_), Stores::past_cache, fresh)),
        turn_(copies_, part.run.device(), part.run.threads()) {
    if (passes_on) streams_.pass_on = pass_on_.emplace(part.run.device(), nullptr).get();
    driver_.emplace(part.work, part.run.device(), *copies_, turn_, in_ring_, out_ring_, streams_,
                    reinterpret_cast<uint16_t*>(halves_.data()));
  }
  PanelDriver<Args>& driver() { return *driver_; }
  void add_streams(FinishOnError& finish) const {
    for (const cudaStream_t stream : {streams_.in, streams_.compute, streams_.out, streams_.pass_on})
      if (stream) finish.add(stream);
  }

 private:
  const Ring in_ring_, out_ring_;
  PanelStreams streams_;
  const PoolBuffer halves_;
  std::optional<StreamLease> pass_on_;
  std::shared_ptr<HostCopies> copies_;
  CopyTurn turn_;
  std::optional<PanelDriver<Args>> driver_;
};

// Does something with each driver while its device is current. What fails says on which device.
template <class Args, class Do>
void on_each(const std::vector<PanelDriver<Args>*>& drivers, Do&& act) {
  for (PanelDriver<Args>* const driver : drivers) {
    const DeviceGuard guard(driver->device());
    try {
      act(*driver);
    } catch (const CudaError& error) {
      if (drivers.size() == 1) throw;
      throw CudaError(error.code, error.name, "cuda:" + std::to_string(driver->device()) + ": " + error.what());
    }
  }
}

template <class Args>
void end_if_told(CallWatch& watch, const std::vector<PanelDriver<Args>*>& drivers) {
  std::size_t launched = 0, steps = 0;
  for (const PanelDriver<Args>* const driver : drivers) launched += driver->launched(), steps += driver->steps();
  if (!watch.goes_on(int64_t(launched), int64_t(steps)))
    throw CallEnded("a call has ended before its result was there");
}

// The caller drives the devices, and the workers copy.
template <class Args>
void drive(const std::vector<PanelDriver<Args>*>& drivers) {
  on_each(drivers, [&](auto& driver) { driver.begin(drivers); });
  CallWatch* const watch = CallWatch::current();
  for (bool finished = false; !finished;) {
    if (watch) end_if_told(*watch, drivers);
    bool moved = false;
    finished = true;
    on_each(drivers, [&](auto& driver) {
      if (driver.finished()) return;
      moved |= driver.take_turn();
      finished = finished && driver.finished();
    });
    if (moved || finished) continue;
    for (PanelDriver<Args>* const driver : drivers)
      if (!driver->finished()) driver->wait_a_little();
  }
  on_each(drivers, [](auto& driver) { driver.end(); });
}

}  // namespace

PipelineRun::PipelineRun(int device, cudaStream_t stream, std::size_t in_bytes, std::size_t out_bytes,
                         std::size_t devices)
    : device_(device),
      bytes_(in_bytes + out_bytes),
      sizes_(ring_sizes(in_bytes, out_bytes, std::max(devices, 1 + std::size_t(other_devices_in_use(device))))),
      in_(device, nullptr),
      out_(device, nullptr),
      stream_(stream),
      blocks_(device, sizes_.in_blocks + sizes_.out_blocks, 2) {
  shrink(sizes_, blocks_.count());
  measure_link(device, blocks_[0], in_.get(), out_.get());
}

int PipelineRun::threads() const { return thread_count(bytes_); }

CopySizes PipelineRun::sizes() const {
  const auto floats = [](std::size_t bytes) { return int64_t(bytes / sizeof(float)); };
  return {floats(sizes_.in_slot), floats(sizes_.out_slot), threads() < threads_for_short_lines ? 0 : long_line};
}

template <class Args>
void carry_out(const std::vector<DevicePart<Args>>& parts, const Lines<float>& output) {
  const auto [memory, bytes] = fresh_pages(output, parts.front().work.copies.stores);
  const auto fresh = std::make_shared<FreshPages>(memory, bytes);
  std::deque<ActivePart<Args>> active;
  std::vector<PanelDriver<Args>*> drivers;
  for (const DevicePart<Args>& part : parts) {
    const DeviceGuard guard(part.run.device());
    drivers.push_back(&active.emplace_back(part, parts.size() > 1, fresh).driver());
  }
  FinishOnError finish;
  for (const ActivePart<Args>& part : active) part.add_streams(finish);
  try {
    drive(drivers);
  } catch (const OutOfMemory& error) {
    if (std::any_of(drivers.begin(), drivers.end(), [](const auto* driver) { return driver->has_stored(); }))
      throw out_of_memory_halfway(error);
    throw;
  }
  finish.disarm();
}

#define FL_INSTANTIATE(Args) template void carry_out(const std::vector<DevicePart<Args>>&, const Lines<float>&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
