#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <memory>
#include <new>
#include <thread>

namespace fl {
namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long a worker looks for the next call before it sleeps. Long enough for calls in a row, short enough that the
// threads of two libraries do not fight for the cores.
constexpr auto spin_time = std::chrono::microseconds(40);
constexpr int max_workers = 255;

struct Job {
  void (*task)(void*, int64_t, int);
  void* arg;
  int64_t tasks;
  std::atomic<int64_t> next{0};

  void work(int slot) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) task(arg, i, slot);
  }
};

// One word per worker says where it stands. The caller posts a job and, when it has run out of tasks, takes back the
// post of a worker that has not begun: a thread that is slow to wake never delays a call.
enum State : uint32_t { idle, asleep, posted, running };

struct alignas(128) Worker {
  std::atomic<uint32_t> state{idle};
  Job* job = nullptr;
  int slot = 0;

  pthread_t thread{};
  cpu_set_t allowed;  // the worker's CPUs, while it may not wake on the caller's
  bool narrowed = false;

  // Linux often queues a woken thread behind the one that woke it, which does not sleep: 16 us calls then gained
  // nothing from a second thread, and calls of 100 us took twice as long. So the CPU of the caller is taken out of the
  // worker's set for the moment of waking; the worker puts it back first thing.
  void keep_apart() {
    const int cpu = sched_getcpu();
    if (cpu < 0 || pthread_getaffinity_np(thread, sizeof allowed, &allowed) != 0) return;
    cpu_set_t others = allowed;
    CPU_CLR(cpu, &others);
    narrowed = CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread, sizeof others, &others) == 0;
  }
  void post(Job* new_job) {
    job = new_job;
    if (state.load(std::memory_order_acquire) == asleep) keep_apart();
    if (state.exchange(posted, std::memory_order_acq_rel) == asleep) state.notify_one();
  }
  void finish() {  // the caller's side: the job is about to go out of scope
    uint32_t expected = posted;
    if (state.compare_exchange_strong(expected, idle, std::memory_order_acq_rel)) return;
    for (int spins = 0; state.load(std::memory_order_acquire) == running; ++spins) {
      if (spins < 4000) pause();
      else std::this_thread::yield();
    }
  }
  void wait_for_post() {
    const auto give_up = std::chrono::steady_clock::now() + spin_time;
    for (int spins = 0; state.load(std::memory_order_relaxed) != posted; ++spins) {
      if (spins % 64 != 63 || std::chrono::steady_clock::now() < give_up) {
        pause();
        continue;
      }
      uint32_t expected = idle;
      if (state.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel)) state.wait(asleep);
      if (narrowed) {
        pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
        narrowed = false;
      }
    }
  }
  [[noreturn]] void loop() {
    for (;;) {
      wait_for_post();
      uint32_t expected = posted;
      if (!state.compare_exchange_strong(expected, running, std::memory_order_acq_rel)) continue;
      job->work(slot);
      state.store(idle, std::memory_order_release);
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
  Worker& operator[](int i) { return *workers_[i]; }

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
  std::array<Worker*, max_workers> workers_{};
};

// Never destroyed: workers may outlive static destructors. A forked child has none of the threads, so it forgets the
// pool (without freeing it: another thread may have been inside it) and starts a new one when it needs one.
std::atomic<Pool*> current{nullptr};

Pool* pool() {
  if (Pool* there = current.load(std::memory_order_acquire)) return there;
  static const bool registered = pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); }) == 0;
  if (!registered) return nullptr;
  Pool* fresh = new (std::nothrow) Pool;
  Pool* expected = nullptr;
  if (fresh && !current.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) {
    delete fresh;
    return expected;
  }
  return fresh;
}

}  // namespace

void run_tasks(int64_t tasks, int threads, void (*task)(void*, int64_t, int), void* arg) {
  Job job{task, arg, tasks};
  threads = int(std::min<int64_t>(threads, tasks));
  Pool* const team = threads > 1 ? pool() : nullptr;
  if (!team || !team->try_claim()) return job.work(0);
  const int helpers = team->workers(threads - 1);
  for (int i = 0; i < helpers; ++i) (*team)[i].post(&job);
  job.work(0);
  for (int i = 0; i < helpers; ++i) (*team)[i].finish();
  team->release();
}

}  // namespace fl
