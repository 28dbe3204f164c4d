// The library's own threads.
//
// Why not OpenMP: a GNU OpenMP region after fork() hangs, two OpenMP runtimes in one process abort, and neither can be
// fixed from outside. The pool starts on the first call that wants it, is dropped and restarted in a forked child, and
// a call that finds it busy (a second caller, a nested call) runs on the calling thread alone: it never waits for
// another call.
#pragma once

#include <cstdint>

namespace fl {

inline constexpr int most_threads = 256;  // of a call

// Runs task(arg, index, slot) for every index in [0, tasks), on at most `threads` threads, the caller among them.
// slot < threads names the thread within this call: two tasks that run at the same time have different slots.
// Indices are handed out in order. A task must not wait for one with a higher index.
void run_tasks(int64_t tasks, int threads, void (*task)(void* arg, int64_t index, int slot), void* arg);

// The same for a lambda (index, slot). The instantiations belong to the caller's translation unit, as its lambdas do.
template <class F>
void parallel_for(int64_t tasks, int threads, F& f) {
  run_tasks(tasks, threads, [](void* arg, int64_t index, int slot) { (*static_cast<F*>(arg))(index, slot); }, &f);
}

}  // namespace fl
