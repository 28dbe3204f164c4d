#include "cuda/runtime/ring.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "core/errors.h"
#include "core/text.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/per_device.h"
#include "device/device_info.h"
#include "runtime/huge_pages.h"

namespace fl::cuda {
namespace {

// Calls of a kind share what they have in common with others last: a short call does not wait for long ones, nor the
// other way round. Of the longer ones two at a time fill the link, and more get in each other's way: four at n = 8192
// did 0.85 of what one does, eight 0.65, two 1.07.
enum Kind { small, medium, large, kinds };
constexpr int most_blocks[] = {2, 8, INT_MAX};  // of a call
constexpr int most_calls[] = {INT_MAX, 2, 2};   // at a time
constexpr int own_blocks[] = {4, 6, 6};         // that no other kind takes

Kind kind_of(int wanted) {
  int kind = small;
  while (wanted > most_blocks[kind]) ++kind;
  return Kind(kind);
}

// The calls of a kind: what they use, and who waits, in the order in which they came.
struct Queue {
  int blocks = 0, calls = 0;
  uint64_t next = 0, served = 0;
};

struct State {
  State() { idle.reserve(PinnedBlocks::most_in_all); }  // so that giving a block back cannot fail
  std::mutex mutex;                                     // guards idle and queues; never held during a CUDA call
  std::condition_variable given_back;
  std::vector<char*> idle;
  Queue queues[kinds];
  std::atomic<std::size_t> pinned{0};
};

std::atomic<bool> some_made{false};  // blocks: before that nobody needs to know which devices there are

// Huge pages, touched and then registered: ten times faster than cudaHostAlloc (0.6 ms against 2.3 for a block, H200
// host), and the copies of the workers need fewer translations.
char* create(State& state) {
  char* const block = static_cast<char*>(map_huge_pages(PinnedBlocks::block_bytes));
  if (!block) return nullptr;
  ::madvise(block, PinnedBlocks::block_bytes, MADV_DONTFORK);  // a child cannot use it and should not copy it
  std::memset(block, 0, PinnedBlocks::block_bytes);
  const AllowDuringCapture allow;
  const cudaError_t error = cudaHostRegister(block, PinnedBlocks::block_bytes, cudaHostRegisterPortable);
  if (error == cudaSuccess) {
    state.pinned += PinnedBlocks::block_bytes;
    some_made = true;
    return block;
  }
  unmap_huge_pages(block, PinnedBlocks::block_bytes);
  static_cast<void>(cudaGetLastError());
  if (error == cudaErrorMemoryAllocation) return nullptr;
  fail(error, "cudaHostRegister", __FILE__, __LINE__);
}

void destroy(State& state, char* block) noexcept {
  ignore_errors(cudaHostUnregister(block));
  unmap_huge_pages(block, PinnedBlocks::block_bytes);
  state.pinned -= PinnedBlocks::block_bytes;
}

void give_back(State& state, std::vector<char*>& blocks, Kind kind, int reserved, bool ends) noexcept {
  {
    const std::lock_guard lock(state.mutex);
    for (char* block : blocks) state.idle.push_back(block);
    state.queues[kind].blocks -= reserved;
    state.queues[kind].calls -= ends;
  }
  state.given_back.notify_all();
}

// With the mutex.
int left_for(const State& state, Kind kind) {
  int left = PinnedBlocks::most_in_all;
  for (int i = 0; i < kinds; ++i) left -= std::max(state.queues[i].blocks, i == kind ? 0 : own_blocks[i]);
  return left;
}

// How many blocks the call may have; counts them as in use. Takes what there is of them.
int reserve(State& state, Kind kind, int wanted, int fewest, std::vector<char*>& blocks) {
  std::unique_lock lock(state.mutex);
  Queue& queue = state.queues[kind];
  const uint64_t turn = queue.next++;
  state.given_back.wait(
      lock, [&] { return queue.served == turn && queue.calls < most_calls[kind] && left_for(state, kind) >= fewest; });
  ++queue.served;
  ++queue.calls;
  const int count = std::min(wanted, left_for(state, kind));
  queue.blocks += count;
  for (; int(blocks.size()) < count && !state.idle.empty(); state.idle.pop_back()) blocks.push_back(state.idle.back());
  lock.unlock();
  state.given_back.notify_all();  // the next in the queue may go on
  return count;
}

// What no call uses, of every device, gives way where host memory runs out; a child of fork has none of it.
void give_back_idle() noexcept {
  if (!some_made || device_count() == 0) return;
  for (int device = 0; device < device_count(); ++device) {
    if (pinned_bytes(device) == 0) continue;
    const DeviceGuard guard(device, std::nothrow);
    const AllowDuringCapture allow;
    trim_pinned(device);
  }
}
const KeptBlocks idle_blocks(give_back_idle);

[[noreturn]] void out_of_memory(const State& state) {
  throw OutOfMemory("could not get " + bytes_text(PinnedBlocks::block_bytes) + " of pinned host memory; " +
                    bytes_text(state.pinned) + " are in use by fastlinalg");
}

}  // namespace

PinnedBlocks::PinnedBlocks(int device, int wanted, int fewest) : device_(device), wanted_(std::max(wanted, fewest)) {
  State& state = per_device<State>(device);
  const Kind kind = kind_of(wanted_);
  blocks_.reserve(std::size_t(wanted_));
  const int reserved = reserve(state, kind, wanted_, fewest, blocks_);
  try {
    while (count() < reserved) {
      char* const block = create(state);
      if (!block && count() < fewest) out_of_memory(state);
      if (!block) break;
      blocks_.push_back(block);
    }
  } catch (...) {
    give_back(state, blocks_, kind, reserved, true);
    throw;
  }
  if (count() < reserved) {
    std::vector<char*> none;
    give_back(state, none, kind, reserved - count(), false);
  }
}

PinnedBlocks::~PinnedBlocks() { give_back(per_device<State>(device_), blocks_, kind_of(wanted_), count(), true); }

int other_devices_in_use(int device) {
  int count = 0;
  for (int other = 0; other < device_count(); ++other) {
    if (other == device) continue;
    State& state = per_device<State>(other);
    const std::lock_guard lock(state.mutex);
    count += std::ranges::any_of(state.queues, [](const Queue& queue) { return queue.calls > 0; });
  }
  return count;
}

void trim_pinned(int device) {
  State& state = per_device<State>(device);
  const auto take = [&]() -> char* {
    const std::lock_guard lock(state.mutex);
    if (state.idle.empty()) return nullptr;
    char* const block = state.idle.back();
    state.idle.pop_back();
    return block;
  };
  while (char* const block = take()) destroy(state, block);
}

std::size_t pinned_bytes(int device) { return per_device<State>(device).pinned; }

}  // namespace fl::cuda
