#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <memory>
#include <new>
#include <thread>

#include "runtime/fork.h"

namespace fl {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long a worker looks for the next call before it sleeps: 40 us after the end of the last one, which is long enough
// for calls in a row and too short for the threads of two libraries to fight for the cores. A worker that has run out
// of tasks waits for the end of its call awake, but no longer than `patience`: on 16 cores, a third of the workers had
// gone to sleep before the slowest one was done, and every call paid for waking them.
constexpr auto spin_time = std::chrono::microseconds(40);
constexpr auto patience = std::chrono::milliseconds(1);
constexpr int max_workers = most_threads - 1;

struct Job {
  void (*task)(void*, int64_t, int);
  void* arg;
  int64_t tasks;
  alignas(128) std::atomic<int64_t> next{0};

  void work(int slot) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) task(arg, i, slot);
  }
};

// What the threads of a pool share.
struct Common {
  alignas(128) std::atomic<uint32_t> over{0};  // the number of the last call that has ended
  alignas(128) std::atomic<uint32_t> gate{0};  // the futex of all sleepers: counts the times that some were woken
  std::atomic<int> caller_cpu{-1};
};

// Sleepers are woken together, by one system call that names them by a bit each: one after the other they cost the
// caller 2 us each before it can begin to work itself.
uint32_t bit_of(int slot) { return 1u << (slot % 32); }
void sleep_at(std::atomic<uint32_t>& gate, uint32_t seen, uint32_t bit) {
  ::syscall(SYS_futex, &gate, FUTEX_WAIT_BITSET_PRIVATE, seen, nullptr, nullptr, bit);
}
void wake_at(std::atomic<uint32_t>& gate, uint32_t bits) {
  gate.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &gate, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, bits);
}

// Linux often queues a woken thread behind the one that woke it, which does not sleep: 16 us calls then gained nothing
// from a second thread, and calls of 100 us took twice as long. So a worker sleeps with the CPU of its last caller
// taken out of its set, and puts it back when awake; a caller that has moved since does that to the sleeper itself.
class KeptApart {
 public:
  // By the worker, or by a caller that has posted to the sleeping worker.
  void narrow(pthread_t thread, int cpu) {
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

// One word per worker says where it stands. The caller posts a job and, when it has run out of tasks, takes back the
// post of a worker that has not begun: a thread that is slow to wake never delays a call.
enum State : uint32_t { idle, asleep, posted, running };

struct alignas(128) Worker {
  using Clock = std::chrono::steady_clock;

  std::atomic<uint32_t> state{idle};
  Job* job = nullptr;
  uint32_t call = 0;
  int slot = 0;
  Common* common = nullptr;
  pthread_t thread{};
  KeptApart apart;  // the caller's while the worker is asleep, else the worker's

  // By the caller. Whether the worker has to be woken.
  bool post(Job* new_job, uint32_t number, int caller_cpu) {
    job = new_job;
    call = number;
    if (state.load(std::memory_order_acquire) == asleep) apart.narrow(thread, caller_cpu);
    return state.exchange(posted, std::memory_order_seq_cst) == asleep;
  }
  void finish() {  // the caller's side: the job is about to go out of scope
    uint32_t expected = posted;
    if (state.compare_exchange_strong(expected, idle, std::memory_order_acq_rel)) return;
    for (int spins = 0; state.load(std::memory_order_acquire) == running; ++spins) {
      if (spins < 4000) pause();
      else std::this_thread::yield();
    }
  }

  // The rest by the worker.
  void sleep() {
    uint32_t seen = common->gate.load(std::memory_order_seq_cst);
    apart.narrow(pthread_self(), common->caller_cpu.load(std::memory_order_relaxed));
    uint32_t expected = idle;
    state.compare_exchange_strong(expected, asleep, std::memory_order_seq_cst);
    while (state.load(std::memory_order_seq_cst) == asleep) {
      sleep_at(common->gate, seen, bit_of(slot));
      seen = common->gate.load(std::memory_order_seq_cst);
    }
  }
  void wait_for_post(uint32_t last_call) {
    auto now = Clock::now(), give_up = now + spin_time;
    const auto latest = now + patience;
    for (int spins = 1; state.load(std::memory_order_relaxed) != posted; ++spins) {
      pause();
      if (spins % 64 != 0) continue;
      now = Clock::now();
      if (now < latest && common->over.load(std::memory_order_relaxed) != last_call) give_up = now + spin_time;
      if (now < give_up) continue;
      sleep();
      give_up = Clock::now() + spin_time;
    }
  }
  [[noreturn]] void loop() {
    for (uint32_t last_call = 0;;) {
      wait_for_post(last_call);
      uint32_t expected = posted;
      if (!state.compare_exchange_strong(expected, running, std::memory_order_acq_rel)) continue;
      last_call = call;
      job->work(slot);
      state.store(idle, std::memory_order_release);
      apart.restore();
    }
  }
};

class Pool {
 public:
  bool try_claim() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  // Only by the one who holds the claim. Gives at least the workers there are if no more threads can be had.
  int workers(int wanted) {
    wanted = std::min(wanted, max_workers);
    while (started_ < wanted && start_one()) ++started_;
    return std::min(started_, wanted);
  }
  void start(Job& job, int helpers) {
    const int cpu = sched_getcpu();
    common_.caller_cpu.store(cpu, std::memory_order_relaxed);
    ++call_;
    uint32_t sleepers = 0;
    for (int i = 0; i < helpers; ++i)
      if (workers_[i]->post(&job, call_, cpu)) sleepers |= bit_of(workers_[i]->slot);
    if (sleepers) wake_at(common_.gate, sleepers);
  }
  void finish(int helpers) {
    for (int i = 0; i < helpers; ++i) workers_[i]->finish();
    common_.over.store(call_, std::memory_order_relaxed);
  }

 private:
  // Small stacks: kernels keep no arrays there, and 64 of the default size would take 512 MiB of address space.
  static bool create_thread(Worker& worker) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, std::max<std::size_t>(std::size_t(PTHREAD_STACK_MIN), 512 * 1024));
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const auto entry = [](void* w) -> void* { static_cast<Worker*>(w)->loop(); };
    const bool ok = pthread_create(&worker.thread, &attributes, entry, &worker) == 0;
    pthread_attr_destroy(&attributes);
    return ok;
  }
  bool start_one() {
    std::unique_ptr<Worker> worker(new (std::nothrow) Worker);
    if (!worker) return false;
    worker->slot = started_ + 1;
    worker->common = &common_;
    // Signals belong to the threads of the application.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool ok = create_thread(*worker);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (ok) workers_[started_] = worker.release();
    return ok;
  }

  std::atomic<bool> busy_{false};
  int started_ = 0;
  uint32_t call_ = 0;
  Common common_;
  std::array<Worker*, max_workers> workers_{};
};

// A forked child has none of the threads, and starts a pool of its own.
constinit PerProcess<Pool> pool;

}  // namespace

void run_tasks(int64_t tasks, int threads, void (*task)(void*, int64_t, int), void* arg) {
  Job job{task, arg, tasks};
  threads = int(std::min<int64_t>(threads, tasks));
  Pool* const team = threads > 1 ? pool.try_get() : nullptr;
  if (!team || !team->try_claim()) return job.work(0);
  const int helpers = team->workers(threads - 1);
  team->start(job, helpers);
  job.work(0);
  team->finish(helpers);
  team->release();
}

}  // namespace fl
