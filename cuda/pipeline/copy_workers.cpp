#include "cuda/pipeline/copy_workers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "runtime/pause.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace fl::cuda {
namespace {

// Pinned memory admits fewer calls at a time on one device. One more gets no workers and copies by itself.
constexpr std::size_t most_calls = 64;
constexpr int most_workers = 14;  // for each device: its link is full before
constexpr int few_workers = 4;
// What a worker copies for one call before it goes on to the next one: parts of short calls are smaller than those of
// long ones, and a turn is as many bytes for all.
constexpr std::size_t turn_bytes = std::size_t(512) << 10;

struct Call {
  std::shared_ptr<HostCopies> copies;
  int device = 0, threads = 0;
};

// Short sections of all workers at once, which would send each other to sleep at a mutex.
class SpinLock {
 public:
  void lock() {
    wait_until([this] { return !taken_.test_and_set(std::memory_order_acquire); });
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

void serve(void*, int64_t, int slot);

struct Workers {
  std::mutex mutex;     // of who comes and goes; guards `service`
  SpinLock calls_lock;  // guards `calls` and `callers`; taken while the mutex is held
  std::array<Call, most_calls> calls;
  std::atomic<std::size_t> callers{0};  // the first so many of `calls`
  PoolService service{serve};
  std::atomic<unsigned> changes{0};       // of `calls`
  std::atomic<int> share{0}, present{0};  // workers for each call; at work
};

// Never destroyed: threads of the pool outlive static objects.
Workers& all() {
  static Workers& workers = *new Workers;
  return workers;
}

// With the mutex.
void share_out(Workers& workers) {
  const auto callers = int(workers.callers);
  int wanted = 0, devices = 0;
  for (auto call = workers.calls.begin(); call != workers.calls.begin() + callers; ++call) {
    wanted += call->threads - 1;
    devices += std::none_of(workers.calls.begin(), call, [&](const Call& x) { return x.device == call->device; });
  }
  const int threads = std::clamp(num_threads() - callers, 0, std::min(wanted, most_workers * devices));
  workers.share.store(threads / std::max(callers, 1), std::memory_order_relaxed);
  workers.changes.fetch_add(1, std::memory_order_release);
  workers.service.set_helpers(threads);
}

bool add(Workers& workers, Call call) {
  const std::lock_guard lock(workers.mutex);
  if (workers.callers == most_calls) return false;
  {
    const std::lock_guard calls(workers.calls_lock);
    workers.calls[workers.callers++] = std::move(call);
  }
  share_out(workers);
  return true;
}

void remove(Workers& workers, const HostCopies* copies) {
  const std::lock_guard lock(workers.mutex);
  const auto begin = workers.calls.begin(), end = begin + std::ptrdiff_t(workers.callers);
  const auto found = std::find_if(begin, end, [&](const Call& call) { return call.copies.get() == copies; });
  Call removed;  // let go of without the lock
  {
    const std::lock_guard calls(workers.calls_lock);
    removed = std::exchange(*found, std::move(*(end - 1)));
    --workers.callers;
  }
  share_out(workers);
}

// What one worker knows of the calls. It may know one that has ended: that is closed, so nothing of it is left to do.
class Round {
 public:
  Round(Workers& workers, int helper) : workers_(workers), helper_(helper), at_(std::size_t(helper)) {}

  // One turn for the next call that has something to do, or some pages of a result. False if there is nothing.
  bool turn() {
    look();
    for (std::size_t i = 0; i < count_; ++i)
      if (copy(*calls_[++at_ % count_])) return true;
    for (std::size_t i = 0; i < count_; ++i)
      if (calls_[++at_ % count_]->fault_in()) return true;
    return false;
  }

 private:
  void look() {
    const unsigned changes = workers_.changes.load(std::memory_order_acquire);
    if (changes == seen_) return;
    seen_ = changes;
    std::array<std::shared_ptr<HostCopies>, most_calls> now;
    const std::size_t before = count_;
    {
      const std::lock_guard lock(workers_.calls_lock);
      count_ = workers_.callers;
      for (std::size_t i = 0; i < count_; ++i) now[i] = workers_.calls[i].copies;
    }
    for (std::size_t i = 0; i < std::max(before, count_); ++i) calls_[i].swap(now[i]);
  }
  // Some workers fault pages in before they copy in, so that the first copies out find theirs.
  std::size_t copy_part(HostCopies& copies, bool faults_first) {
    if (const std::size_t bytes = copies.copy_out()) return bytes;
    if (const std::size_t bytes = faults_first ? copies.fault_in() : 0) return bytes;
    return copies.copy_in();
  }
  bool copy(HostCopies& copies) {
    const bool faults_first = copies.faults_first(helper_, workers_.share.load(std::memory_order_relaxed));
    std::size_t done = 0;
    for (std::size_t bytes = 1; bytes > 0 && done < turn_bytes; done += bytes) bytes = copy_part(copies, faults_first);
    return done > 0;
  }

  Workers& workers_;
  int helper_;
  std::size_t at_, count_ = 0;
  unsigned seen_ = 0;
  std::array<std::shared_ptr<HostCopies>, most_calls> calls_;
};

void serve(void*, int64_t, int slot) {
  Workers& workers = all();
  workers.present.fetch_add(1, std::memory_order_relaxed);
  for (Round round(workers, slot - 1); workers.service.keeps_helpers();)
    if (!round.turn())
      for (int i = 0; i < 8; ++i) pause();
  workers.present.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

CopyTurn::CopyTurn(std::shared_ptr<HostCopies> copies, int device, int threads)
    : copies_(std::move(copies)), served_(threads > 1 && add(all(), {copies_, device, threads})) {}

CopyTurn::~CopyTurn() {
  copies_->close();
  if (served_) remove(all(), copies_.get());
}

bool CopyTurn::needs_caller() const {
  if (!served_) return true;
  const Workers& workers = all();
  return workers.present.load(std::memory_order_relaxed) < few_workers * int(workers.callers.load());
}

bool CopyTurn::is_shared() const { return served_ && all().callers.load(std::memory_order_relaxed) > 1; }

}  // namespace fl::cuda
