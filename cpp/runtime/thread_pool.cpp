#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <memory>
#include <new>
#include <utility>

#include "runtime/call_watch.h"
#include "runtime/fork.h"
#include "runtime/pause.h"
#include "runtime/per_thread.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// How long a worker looks for the next call before it sleeps: 40 us after the end of the last one, which is long enough
// for calls in a row and too short for the threads of two libraries to fight for the cores. A worker that has run out
// of tasks waits for the end of its call awake, but no longer than `patience`: on 16 cores, a third of the workers had
// gone to sleep before the slowest one was done, and every call paid for waking them.
using Clock = std::chrono::steady_clock;
constexpr auto spin_time = std::chrono::microseconds(40);
constexpr auto patience = std::chrono::milliseconds(1);
// A caller counts as one for so long after its call: of calls in a row each would else take the other's core between
// two of them. Shorter than spin_time, so that workers that are awake see it end.
constexpr auto between_calls = std::chrono::microseconds(30);
// How often a worker looks that sleeps while others call. A call may have no helpers as long as other callers have the
// cores, and nobody wakes one when such a call has ended, as its caller mostly calls again at once: on two cores and
// from two callers, waking one at each end cost products of 512 rows and columns 5 % of their rate.
constexpr auto watch_time = std::chrono::milliseconds(2);
constexpr int max_workers = most_threads - 1;

int64_t nanoseconds(std::chrono::nanoseconds time) { return time.count(); }
int64_t now_ns() { return nanoseconds(Clock::now().time_since_epoch()); }

// Of the tasks of a call that may be watched, by its caller. Some are as short as a look at the clock: not before each.
class Watched {
 public:
  Watched(CallWatch* watch, int64_t tasks, int threads)
      : watch_(watch),
        tasks_(tasks),
        at_once_(1 + tasks / 1024),
        one_each_(tasks <= threads),
        next_(watch ? 0 : tasks) {}
  bool may_begin(int64_t index) {
    if (index < next_) return true;
    next_ = index + at_once_;
    return watch_->goes_on(one_each_ ? 0 : index, tasks_);  // a thread that has one task says itself how far it is
  }

 private:
  CallWatch* const watch_;
  const int64_t tasks_, at_once_;
  const bool one_each_;
  int64_t next_;  // the first before which is a look
};

// What a call, or a service, has open for helpers. The place of a job in the pool outlives it, so that a worker may
// look at it at any time; who has entered is waited for.
class alignas(128) Job {
 public:
  using Task = void (*)(void*, int64_t, int);

  // ---- the caller's side
  bool claim() {
    uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, claimed, std::memory_order_acquire);
  }
  void open(Task task, void* arg, int64_t tasks, int most, bool is_service) {
    task_ = task, arg_ = arg;
    next_.store(0, std::memory_order_relaxed);
    tasks_.store(tasks, std::memory_order_relaxed);
    state_.store(claimed | opened | uint32_t(most) << 8 | (is_service ? service : 0), std::memory_order_seq_cst);
  }
  void allow(int most) {  // another number of helpers
    uint32_t seen = look();
    while (!state_.compare_exchange_weak(seen, (seen & ~limit) | uint32_t(most) << 8, std::memory_order_seq_cst))
      continue;
  }
  void close() {
    state_.fetch_and(~opened, std::memory_order_acq_rel);
    wait_until([this] { return inside(look()) == 0; });
  }
  void release(int64_t now) {
    closed_at_.store(now, std::memory_order_relaxed);
    state_.store(0, std::memory_order_release);
  }

  // ---- everyone's
  uint32_t look() const { return state_.load(std::memory_order_acquire); }
  static bool is_open(uint32_t state) { return state & opened; }
  static bool is_service(uint32_t state) { return state & service; }
  static int inside(uint32_t state) { return int(state & 255); }
  static bool is_active(uint32_t state) { return is_open(state) || inside(state) > 0; }
  static int most(uint32_t state) { return int(state >> 8 & 255); }
  bool has_tasks() const { return next_.load(std::memory_order_relaxed) < tasks_.load(std::memory_order_relaxed); }
  bool closed_since(int64_t ns) const { return closed_at_.load(std::memory_order_relaxed) > ns; }

  // As one of at most `most` helpers. The slot, or 0 if it is closed or full by now; `seen` becomes what was entered.
  // Slots are different while there are tasks: only who finds none leaves a call, and those of a service do not count.
  int enter(uint32_t& seen, int most) {
    while (is_open(seen) && inside(seen) < std::min(most, Job::most(seen)))
      if (state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return inside(seen) + 1;
    return 0;
  }
  void serve(int slot) { task_(arg_, 0, slot); }
  void work(int slot) {
    const int64_t tasks = tasks_.load(std::memory_order_relaxed);
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks;) task_(arg_, i, slot);
  }
  // By the caller. What is not begun is left out if the call is to end.
  void work(Watched watched) {
    const int64_t tasks = tasks_.load(std::memory_order_relaxed);
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      if (!watched.may_begin(i)) return next_.store(tasks, std::memory_order_relaxed);
      task_(arg_, i, 0);
    }
  }
  void leave() { state_.fetch_sub(1, std::memory_order_release); }

 private:
  static constexpr uint32_t limit = 255u << 8, claimed = 1u << 16, opened = 1u << 17, service = 1u << 18;

  // Three cache lines: what everyone writes who comes or goes, what they read of it then, and what each task writes.
  std::atomic<uint32_t> state_{0};  // how many are inside, 8 bits; how many may be, 8 bits; the flags
  alignas(128) Task task_ = nullptr;
  void* arg_ = nullptr;
  std::atomic<int64_t> tasks_{0}, closed_at_{0};
  alignas(128) std::atomic<int64_t> next_{0};
};

// What the threads of a pool share.
struct Common {
  alignas(128) std::atomic<uint32_t> gate{0};  // the futex of all sleepers: counts the times that some were woken
  std::atomic<int> caller_cpu{-1};
};

// Sleepers are woken together, by one system call that names them by a bit each: one after the other they cost the
// caller 2 us each before it can begin to work itself.
uint32_t bit_of(int slot) { return 1u << (slot % 32); }
void sleep_at(std::atomic<uint32_t>& gate, uint32_t seen, uint32_t bit, const timespec* until) {
  ::syscall(SYS_futex, &gate, FUTEX_WAIT_BITSET_PRIVATE, seen, until, nullptr, bit);
}
timespec in(std::chrono::nanoseconds time) {  // Clock is the one of a futex, CLOCK_MONOTONIC
  const int64_t at = now_ns() + nanoseconds(time), second = 1000000000;
  return {time_t(at / second), long(at % second)};
}
void wake_at(std::atomic<uint32_t>& gate, uint32_t bits) {
  gate.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &gate, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, bits);
}

// Linux often queues a woken thread behind the one that woke it, which does not sleep: 16 us calls then gained nothing
// from a second thread, and calls of 100 us took twice as long. So a worker sleeps with the CPU of its last caller
// taken out of its set, and puts it back when awake; a caller that has moved since does that to the sleeper itself.
class AffinityMask {
 public:
  // By the worker, or by a caller that has posted to the sleeping worker.
  void exclude(pthread_t thread, int cpu) {
    if (cpu < 0 || cpu >= CPU_SETSIZE || cpu == without_) return;
    if (without_ < 0 && pthread_getaffinity_np(thread, sizeof allowed_, &allowed_) != 0) return;
    narrowed_ = allowed_;
    CPU_CLR(cpu, &narrowed_);
    if (CPU_COUNT(&narrowed_) > 0 && pthread_setaffinity_np(thread, sizeof narrowed_, &narrowed_) == 0) without_ = cpu;
  }
  // By the worker. Someone else may have set another mask meanwhile: it stays.
  void restore() {
    if (without_ < 0) return;
    without_ = -1;
    cpu_set_t now;
    if (pthread_getaffinity_np(pthread_self(), sizeof now, &now) == 0 && CPU_EQUAL(&now, &narrowed_))
      pthread_setaffinity_np(pthread_self(), sizeof allowed_, &allowed_);
  }

 private:
  cpu_set_t allowed_, narrowed_;
  int without_ = -1;
};

class Pool;

// One word per worker says where it stands; one that watches sleeps too, but looks by itself from time to time. A
// caller opens a job and invites as many workers as it may have; others do not look, as they would be in each other's
// way. A caller that has run out of tasks does not wait for one that has not entered yet: a thread that is slow to wake
// never delays a call.
enum State : uint32_t { busy, idle, asleep, watching, waking, invited };

struct alignas(128) Worker {
  std::atomic<uint32_t> state{busy};
  int number = 0;
  Pool* pool = nullptr;
  Common* common = nullptr;
  pthread_t thread{};
  AffinityMask affinity;  // of who has set `waking` meanwhile, else the worker's

  // By a caller. Whether the worker comes, and whether it has to be woken for that.
  bool invite(int caller_cpu, bool& has_to_wake) {
    uint32_t expected = idle;
    if (state.compare_exchange_strong(expected, invited, std::memory_order_seq_cst)) return true;
    const bool sleeps = expected == asleep || expected == watching;
    if (!sleeps || !state.compare_exchange_strong(expected, waking, std::memory_order_seq_cst)) return false;
    affinity.exclude(thread, caller_cpu);
    state.store(invited, std::memory_order_release);
    return has_to_wake = true;
  }

  // The rest by the worker.
  bool change(uint32_t& now, State next) {  // fails once a caller has begun to invite
    uint32_t expected = now;
    if (!state.compare_exchange_strong(expected, next, std::memory_order_seq_cst)) return false;
    now = next;
    return true;
  }
  void sleep() {
    uint32_t seen = common->gate.load(std::memory_order_seq_cst);
    affinity.exclude(pthread_self(), common->caller_cpu.load(std::memory_order_relaxed));
    for (uint32_t now = idle; state.load(std::memory_order_acquire) != invited;) {
      change(now, asleep);  // before the look: a caller that does not see this word has opened its job before
      const bool watches = others_call();
      if (watches) change(now, watching);
      const timespec then = watches ? in(watch_time) : timespec{};
      sleep_at(common->gate, seen, bit_of(number), watches ? &then : nullptr);
      seen = common->gate.load(std::memory_order_seq_cst);
      if (watches && may_enter() && change(now, idle)) return;
    }
  }
  // `last` is what the worker has just left.
  void wait_for_invitation(const Job* last) {
    auto now = Clock::now(), give_up = now + spin_time;
    const auto latest = now + patience;
    for (int spins = 1; state.load(std::memory_order_acquire) != invited; ++spins) {
      pause();
      if (spins % 64 != 0) continue;
      now = Clock::now();
      if (now < latest && last && Job::is_open(last->look())) give_up = now + spin_time;
      if (now < give_up) continue;
      if (may_enter()) return;  // a caller has not come back
      return sleep();
    }
  }
  bool may_enter() const;
  bool others_call() const;
  [[noreturn]] void loop();
};

class Pool {
 public:
  // ---- the caller's side
  // Null if all places are taken.
  Job* claim() {
    struct Last {
      unsigned place = 0;  // this thread's: nobody else counts it as that of another caller then
    };
    Last* const last = per_thread<Last>();
    const unsigned first = last ? last->place : 0;
    for (unsigned i = 0; i < places; ++i) {
      const unsigned place = (first + i) % places;
      if (!jobs_[place].claim()) continue;
      if (last) last->place = place;
      unsigned used = used_.load(std::memory_order_relaxed);
      while (used <= place && !used_.compare_exchange_weak(used, place + 1, std::memory_order_relaxed)) continue;
      return &jobs_[place];
    }
    return nullptr;
  }
  void open(Job& job, Job::Task task, void* arg, int64_t tasks, int threads) {
    start_workers(threads - 1);
    job.open(task, arg, tasks, threads - 1, false);
    if (const int helpers = room(job, job.look()); helpers > 0) call(helpers);
    else if (nobody_looks()) call(1);
  }
  void open_service(Job& job, Job::Task task, int helpers) {
    start_workers(helpers);
    job.open(task, nullptr, 1, helpers, true);
    call(helpers);
  }
  void allow(Job& job, int helpers) {
    start_workers(helpers);
    job.allow(helpers);
    call(helpers);
  }
  void close(Job& job) {
    job.close();
    job.release(has_company() ? now_ns() : 0);
  }

  // ---- the workers' side
  struct Entrance {
    Job* job = nullptr;
    uint32_t seen = 0;
    int most = 0;  // helpers
  };
  // The open job with the fewest helpers, if it may have one more.
  Entrance enterable() {
    Entrance best;
    for (unsigned i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
      const uint32_t seen = jobs_[i].look();
      if (!Job::is_open(seen) || Job::inside(seen) >= Job::most(seen) || !jobs_[i].has_tasks()) continue;
      if (!best.job || Job::inside(seen) < Job::inside(best.seen)) best = {&jobs_[i], seen};
    }
    if (best.job) best.most = Job::inside(best.seen) + room(*best.job, best.seen);
    return best.most > Job::inside(best.seen) ? best : Entrance{};
  }
  bool is_called() const {  // now, or a moment ago
    const int64_t recent = now_ns() - nanoseconds(watch_time);
    for (unsigned i = 0; i < used_.load(std::memory_order_relaxed); ++i)
      if (Job::is_open(jobs_[i].look()) || jobs_[i].closed_since(recent)) return true;
    return false;
  }

 private:
  static constexpr unsigned places = 64;

  bool has_company() const { return used_.load(std::memory_order_relaxed) > 1; }

  // How many more helpers a job may have, so that callers and helpers together are not more than the threads there are,
  // and calls that run at the same time share them. A call whose last tasks are running counts too: its helpers are at
  // them, and its caller waits awake. A service takes what it was given.
  int room(const Job& own, uint32_t seen) const {
    const int wanted = Job::most(seen) - Job::inside(seen);
    if (Job::is_service(seen) || !has_company()) return wanted;
    int callers = 0, helpers = 0;
    const int64_t recent = now_ns() - nanoseconds(between_calls);
    for (unsigned i = 0; i < used_.load(std::memory_order_relaxed); ++i) {
      const uint32_t state = jobs_[i].look();
      helpers += Job::inside(state);
      const bool calls = Job::is_active(state) ? !Job::is_service(state) : jobs_[i].closed_since(recent);
      if (calls || &jobs_[i] == &own) ++callers;
    }
    const int free = std::max(num_threads(), Job::most(seen) + 1) - callers;
    const int share = (std::max(free, 0) + callers - 1) / callers;
    return std::min({wanted, free - helpers, share - Job::inside(seen)});
  }

  // True if all workers sleep until they are called: two calls that begin at once may each leave the other its core.
  bool nobody_looks() const {
    for (int i = 0; i < started_.load(std::memory_order_acquire); ++i)
      if (workers_[std::size_t(i)]->state.load(std::memory_order_seq_cst) != asleep) return false;
    return true;
  }

  // Who is busy looks when it has finished.
  void call(int helpers) {
    const int cpu = sched_getcpu();
    common_.caller_cpu.store(cpu, std::memory_order_relaxed);
    uint32_t sleepers = 0;
    for (int i = 0; i < started_.load(std::memory_order_acquire) && helpers > 0; ++i) {
      Worker& worker = *workers_[std::size_t(i)];
      bool has_to_wake = false;
      if (worker.invite(cpu, has_to_wake)) --helpers;
      if (has_to_wake) sleepers |= bit_of(worker.number);
    }
    if (sleepers) wake_at(common_.gate, sleepers);
  }

  // Gives what there are if no more threads can be had, or another caller is starting some.
  void start_workers(int wanted) {
    if (started_.load(std::memory_order_relaxed) >= wanted || starting_.exchange(true, std::memory_order_acquire))
      return;
    while (started_.load(std::memory_order_relaxed) < std::min(wanted, max_workers) && start_one())
      started_.fetch_add(1, std::memory_order_release);
    starting_.store(false, std::memory_order_release);
  }
  // Small stacks: kernels keep no arrays there, and 64 of the default size would take 512 MiB of address space.
  static bool create_thread(Worker& worker) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, std::max<std::size_t>(std::size_t(PTHREAD_STACK_MIN), 512 * 1024));
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    // As the process's first thread: a caller that is bound to a core does not bind the workers of all calls.
    cpu_set_t allowed;
    if (sched_getaffinity(getpid(), sizeof allowed, &allowed) == 0)
      pthread_attr_setaffinity_np(&attributes, sizeof allowed, &allowed);
    const auto entry = [](void* w) -> void* { static_cast<Worker*>(w)->loop(); };
    const bool ok = pthread_create(&worker.thread, &attributes, entry, &worker) == 0;
    pthread_attr_destroy(&attributes);
    return ok;
  }
  bool start_one() {
    std::unique_ptr<Worker> worker(new (std::nothrow) Worker);
    if (!worker) return false;
    const int number = started_.load(std::memory_order_relaxed);
    worker->number = number;
    worker->pool = this;
    worker->common = &common_;
    // Signals belong to the threads of the application.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool ok = create_thread(*worker);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (ok) workers_[std::size_t(number)] = worker.release();
    return ok;
  }

  Common common_;
  std::array<Job, places> jobs_;
  std::atomic<unsigned> used_{0};  // the places from here on have never been taken
  std::atomic<bool> starting_{false};
  std::atomic<int> started_{0};
  std::array<Worker*, max_workers> workers_{};
};

bool Worker::may_enter() const { return pool->enterable().job; }
bool Worker::others_call() const { return pool->is_called(); }

void Worker::loop() {
  for (const Job* last = nullptr;;) {
    state.store(idle, std::memory_order_seq_cst);  // before the look: who does not invite has opened its job before
    auto [job, seen, most] = pool->enterable();
    if (!job) {
      wait_for_invitation(std::exchange(last, nullptr));
      continue;
    }
    state.store(busy, std::memory_order_relaxed);
    const int slot = job->enter(seen, most);
    if (slot == 0) continue;
    last = job;
    if (Job::is_service(seen)) job->serve(slot);
    else job->work(slot);
    job->leave();
    affinity.restore();
  }
}

// A forked child has none of the threads, and starts a pool of its own.
constinit PerProcess<Pool> pool;

}  // namespace

void run_tasks(int64_t tasks, int threads, void (*task)(void*, int64_t, int), void* arg) {
  threads = int(std::min<int64_t>({threads, tasks, most_threads}));
  Pool* const team = threads > 1 ? pool.try_get() : nullptr;
  Job* const job = team ? team->claim() : nullptr;
  Watched watched(CallWatch::current(), tasks, threads);
  if (!job) {
    for (int64_t i = 0; i < tasks && watched.may_begin(i); ++i) task(arg, i, 0);
    return;
  }
  const unsigned generation = fork_generation();
  team->open(*job, task, arg, tasks, threads);
  job->work(watched);
  if (generation == fork_generation()) team->close(*job);  // a child that who watches has forked has no helpers
}

void PoolService::set_helpers(int most) {
  most = std::min(most, most_threads - 1);
  Pool* const team = pool.try_get();
  if (!team || most == most_) return;
  Job* job = static_cast<Job*>(job_);
  if (!job && !(job_ = job = team->claim())) return;
  const int before = std::exchange(most_, most);
  if (most == 0) {
    team->close(*job);
    job_ = nullptr;
  } else if (before == 0) team->open_service(*job, serve_, most);
  else team->allow(*job, most);
}

bool PoolService::keeps_helpers() const {
  const uint32_t state = static_cast<const Job*>(job_)->look();
  return Job::is_open(state) && Job::inside(state) <= Job::most(state);
}

}  // namespace fl
