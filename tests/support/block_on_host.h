// The threads of a block of a kernel that is compiled for the host. They go on by turns, from one barrier to the next.
// Without _FORTIFY_SOURCE, with which longjmp refuses another stack.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#define __device__
#define __forceinline__ inline
inline struct {
  int x;
} threadIdx;

struct BlockOnHost {
  enum Barrier { of_warp, of_block };

  struct Thread {
    ucontext_t context;  // where it begins
    jmp_buf here;        // where it goes on: without the system call that a change of contexts makes
    std::vector<char> stack = std::vector<char>(1 << 16);
    bool begun, done;
    int64_t met[2];  // at each kind of barrier

    [[noreturn]] void go_on() {
      if (begun) _longjmp(here, 1);
      begun = true;
      setcontext(&context);
      std::abort();
    }
  };

  std::vector<std::unique_ptr<Thread>> threads;
  ucontext_t end;
  std::function<void()> work;
  int at = 0, count = 0;
  bool backwards = false;

  static BlockOnHost& current() {
    static BlockOnHost block;
    return block;
  }

  void run(int threads_of_block, std::function<void()> of_a_thread, bool in_reverse = false) {
    work = std::move(of_a_thread), backwards = in_reverse, count = threads_of_block;
    while (static_cast<int>(threads.size()) < count) threads.push_back(std::make_unique<Thread>());
    for (int t = 0; t < count; ++t) start(*threads[t]);
    turn_to(0);
    threads[0]->begun = true;
    swapcontext(&end, &threads[0]->context);
  }

  // Until all of `first` to `last` have come as far.
  void meet(int first, int last, Barrier barrier) {
    const int64_t mine = ++threads[at]->met[barrier];
    for (int other = first; other < last; ++other)
      for (int turns = 0; threads[other]->met[barrier] < mine; ++turns) {
        expect(!threads[other]->done && turns <= 1000, "a thread does not come to a barrier");
        yield();
      }
  }

 private:
  void start(Thread& thread) {
    thread.begun = thread.done = false, thread.met[of_warp] = thread.met[of_block] = 0;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data(), thread.context.uc_stack.ss_size = thread.stack.size();
    makecontext(&thread.context, [] { current().begin(); }, 0);
  }
  void begin() {
    work();
    threads[at]->done = true;
    for (int tried = 0; tried < count; ++tried) {
      turn_to(next());
      if (!threads[at]->done) threads[at]->go_on();
    }
    setcontext(&end);
  }
  void yield() {
    const int from = at;
    for (int tried = 0; tried < count; ++tried) {
      turn_to(next());
      if (!threads[at]->done) break;
    }
    if (at != from && _setjmp(threads[from]->here) == 0) threads[at]->go_on();
    turn_to(from);
  }
  int next() const { return (at + (backwards ? count - 1 : 1)) % count; }
  void turn_to(int thread) { at = threadIdx.x = thread; }
};

inline void __syncwarp() {
  BlockOnHost& block = BlockOnHost::current();
  const int warp = block.at / 32 * 32;
  block.meet(warp, warp + 32, BlockOnHost::of_warp);
}
inline void __syncthreads() {
  BlockOnHost& block = BlockOnHost::current();
  block.meet(0, block.count, BlockOnHost::of_block);
}
