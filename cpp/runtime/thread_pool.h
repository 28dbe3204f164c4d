// The library's own threads.
//
// Why not OpenMP: a GNU OpenMP region after fork() hangs, two OpenMP runtimes in one process abort, and neither can be
// fixed from outside. The pool starts on the first call that wants it, and is dropped and restarted in a forked child.
// Calls that run at the same time share its threads: callers and helpers together are not more than the threads there
// are, so where every core has a caller each works alone. A call never waits for another one, and what it shares
// decides nothing about its result.
#pragma once

#include <cstdint>

namespace fl {

// Runs task(arg, index, slot) for every index in [0, tasks), on at most `threads` threads, the caller among them.
// slot < threads names the thread within this call: two tasks that run at the same time have different slots.
// Indices are handed out in order. A task must not wait for one with a higher index.
void run_tasks(int64_t tasks, int threads, void (*task)(void* arg, int64_t index, int slot), void* arg);

// The same for a lambda (index, slot). The instantiations belong to the caller's translation unit, as its lambdas do.
template <class F>
void parallel_for(int64_t tasks, int threads, F& f) {
  run_tasks(tasks, threads, [](void* arg, int64_t index, int slot) { (*static_cast<F*>(arg))(index, slot); }, &f);
}

// Helpers that work for any number of calls at once: each runs serve(), which returns when keeps_helpers() says no.
class PoolService {
 public:
  constexpr explicit PoolService(void (*serve)(void*, int64_t, int slot)) : serve_(serve) {}
  // One thread at a time. With 0 it returns when all have left; any other number is reached in time, if there are
  // threads. Slots begin at 1, and are different as long as the number stays.
  void set_helpers(int most);
  bool keeps_helpers() const;  // by a helper: whether it stays

 private:
  void (*serve_)(void*, int64_t, int);
  void* job_ = nullptr;
  int most_ = 0;
};

}  // namespace fl
