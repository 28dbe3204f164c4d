// Calls that share threads: those of the pool, and the workers that copy for calls on host memory. Prints what is
// wrong, or "all right"; what never ends ends by an alarm.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cuda/pipeline/copy_workers.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace {

using namespace fl;
using namespace fl::cuda;

void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

void spin(int turns) {
  for (int i = 0; i < turns; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// ---------------------------------------------------------------- tasks of the pool
void call_pool(int64_t tasks, int threads, int length) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(tasks)), slots(static_cast<std::size_t>(threads));
  auto task = [&](int64_t i, int slot) {
    if (slot < 0 || slot >= threads) wrong("no such slot");
    if (slots[std::size_t(slot)].exchange(1) != 0) wrong("two tasks have one slot");
    spin(length);
    done[std::size_t(i)].fetch_add(1);
    slots[std::size_t(slot)].store(0);
  };
  parallel_for(tasks, threads, task);
  for (const auto& times : done)
    if (times.load() != 1) wrong(times.load() ? "a task was run twice" : "a task was lost");
}

void tasks_of_many_callers() {
  for (int threads : {2, 3, 5, 16}) {
    set_num_threads(threads);
    in_threads(5, [&](int caller) {
      for (int i = 0; i < 200; ++i) call_pool(1 + (i * 7 + caller) % 40, threads, 50 * (i % 8));
    });
  }
}

void wait_for(const std::atomic<bool>& flag, int most_ms) {
  for (int ms = 0; ms < most_ms && !flag.load(); ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// A call of two tasks that are over once its helper has one of them.
void call_with_helper(std::atomic<bool>& begun, std::atomic<bool>& helped) {
  auto task = [&](int64_t, int slot) {
    begun = true;
    if (slot > 0) helped = true;
    else wait_for(helped, 10000);
  };
  parallel_for(2, 2, task);
}

// A call beside another has the core it began with, also while the caller of the other waits for its helper, which has
// the last task. When the other has ended, and its caller does not call again, a worker comes although it sleeps: it
// has had time to, and nobody invites it.
void left_alone(int slot_of_last) {
  set_num_threads(2 + slot_of_last);  // as many as `one` and the caller of `other` take
  std::atomic<bool> one_runs{false}, end_one{false}, other_runs{false}, helped{false};
  std::thread one([&] {
    auto task = [&](int64_t, int slot) {
      if (slot != slot_of_last) return wait_for(one_runs, 60000);
      one_runs = true;
      wait_for(end_one, 60000);
    };
    parallel_for(2, 2, task);
  });
  wait_for(one_runs, 60000);
  sleep_ms(20);
  std::thread other([&] { call_with_helper(other_runs, helped); });
  wait_for(other_runs, 60000);
  sleep_ms(20);
  if (helped.load()) wrong("more threads than there are");
  end_one = true;
  one.join();
  wait_for(helped, 5000);
  if (!helped.load()) wrong("a call was left alone");
  other.join();
}

// Two calls that begin at once while all workers sleep: each may take the other's core for busy, yet a worker comes to
// the one that lasts.
void at_once() {
  set_num_threads(2);
  for (int round = 0; round < 200; ++round) {
    sleep_ms(6);
    std::atomic<int> ready{0};
    std::atomic<bool> begun{false}, helped{false};
    const auto meet = [&] {
      ++ready;
      while (ready.load() < 2) continue;
    };
    std::thread brief([&] {
      auto task = [](int64_t, int) {};
      meet();
      parallel_for(2, 2, task);
    });
    std::thread lasting([&] {
      meet();
      call_with_helper(begun, helped);
    });
    brief.join();
    wait_for(helped, 5000);
    if (!helped.load()) wrong("of two calls one was left alone");
    lasting.join();
  }
}

void children() {
  set_num_threads(4);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) call_pool(30, 4, 500);
  });
  for (int i = 0; i < 5; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      in_threads(2, [](int) { call_pool(50, 4, 100); });
      std::_Exit(0);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    if (status != 0) wrong("a child of fork cannot call");
  }
  stop = true;
  other.join();
}

// ---------------------------------------------------------------- copies
// A call that sends `copies` matrices through a ring of few slots and back, as a device would that adds 1.
class Call {
 public:
  static constexpr int64_t lines = 64, length = 512, size = lines * length;
  static constexpr std::size_t slots = 3;

  Call(std::size_t copies, int threads, bool fresh)
      : copies_(copies),
        from_(copies * size),
        to_(copies * size),
        ring_(2 * slots * size, -1.0f),
        device_(copies * size) {
    for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = float(i % 1009);
    operand_ = {from_.data(), 1, int64_t(copies) * lines, length, 0, length, 1, length};
    result_ = {to_.data(), 1, int64_t(copies) * lines, length, 0, length, 1, length};
    std::vector<Packing> in;
    std::vector<Unpacking> out;
    for (std::size_t i = 0; i < copies; ++i) {
      const Piece piece{int64_t(i) * lines, lines, 0, length};
      in.push_back({&operand_, piece, in_slot(i), length});
      out.push_back({out_slot(i), length, &result_, piece});
    }
    const auto pages = std::make_shared<FreshPages>(fresh ? to_.data() : nullptr, fresh ? 4 * to_.size() : 0);
    host_ = std::make_shared<HostCopies>(in, out, Stores::past_cache, pages);
    turn_ = std::make_unique<CopyTurn>(host_, 0, threads);
    host_->allow_in(slots);
  }
  float* in_slot(std::size_t i) { return &ring_[i % slots * size]; }
  float* out_slot(std::size_t i) { return &ring_[(slots + i % slots) * size]; }

  // What the driver does between two looks at the device. False when the call is done.
  bool step(bool copies_itself = true) {
    if (sent_ < copies_ && host_->in_done(sent_)) {
      float* const slot = in_slot(sent_);
      for (int64_t i = 0; i < size; ++i) device_[sent_ * size + std::size_t(i)] = slot[i] + 1;
      for (int64_t i = 0; i < size; ++i) slot[i] = -1;
      host_->allow_in(++sent_ + slots);
    }
    if (fetched_ < sent_ && fetched_ < emptied_ + slots) {
      for (int64_t i = 0; i < size; ++i) out_slot(fetched_)[i] = device_[fetched_ * size + std::size_t(i)];
      host_->allow_out(++fetched_);
    }
    if (emptied_ < fetched_ && host_->out_done(emptied_)) ++emptied_;
    if (copies_itself && turn_->needs_caller()) host_->copy_some();
    return emptied_ < copies_;
  }
  void check() {
    turn_.reset();
    for (std::size_t i = 0; i < to_.size(); ++i)
      if (to_[i] != from_[i] + 1) wrong("a part was lost, or done at the wrong time");
    for (std::size_t i = 0; i < slots * size; ++i)
      if (ring_[i] != -1) wrong("a part was copied twice");
  }
  // As after an error: what is left of the call does not happen.
  void give_up() {
    host_->allow_in(copies_);
    turn_.reset();
    if (host_->copy_some()) wrong("a call that is over has something to do");
    std::fill(ring_.begin(), ring_.end(), -2.0f);
    std::fill(to_.begin(), to_.end(), -2.0f);
    spin(20000);
    for (float x : ring_)
      if (x != -2) wrong("a worker touched a call that was over");
    for (float x : to_)
      if (x != -2) wrong("a worker touched a result after the call");
  }

 private:
  std::size_t copies_, sent_ = 0, fetched_ = 0, emptied_ = 0;
  std::vector<float> from_, to_, ring_, device_;
  Lines<const float> operand_;
  Lines<float> result_;
  std::shared_ptr<HostCopies> host_;
  std::unique_ptr<CopyTurn> turn_;
};

void copies_of_many_calls() {
  for (int threads : {1, 2, 4, 8, 16}) {
    set_num_threads(threads);
    in_threads(4, [&](int caller) {
      for (int i = 0; i < 12; ++i) {
        Call call(std::size_t(2 + (i + caller) % 7), threads, i % 2 == 0);
        const int most = i % 4 == 3 ? 40 + i : -1;
        int steps = 0;
        while (call.step() && ++steps != most) continue;
        if (steps == most) call.give_up();
        else call.check();
      }
    });
  }
}

// Two workers serve both: a short call, whose caller leaves all copies to them, ends long before a long one.
bool short_beside_long() {
  set_num_threads(4);
  constexpr std::size_t copies = 16000, slots = 64;
  std::vector<float> from(Call::size, 1.0f), ring(slots * Call::size);
  const Lines<const float> operand{from.data(), 1, Call::lines, Call::length, 0, Call::length, 1, Call::length};
  std::vector<Packing> in;
  for (std::size_t i = 0; i < copies; ++i)
    in.push_back({&operand, {0, Call::lines, 0, Call::length}, &ring[i % slots * Call::size], Call::length});
  const auto no_pages = std::make_shared<FreshPages>(nullptr, 0);
  const auto long_call = std::make_shared<HostCopies>(in, std::vector<Unpacking>{}, Stores::cached, no_pages);
  const CopyTurn turn(long_call, 0, 3);
  long_call->allow_in(copies);
  while (!long_call->in_done(2)) std::this_thread::yield();
  Call call(8, 3, false);
  while (call.step(false)) continue;
  const bool waited = long_call->in_done(copies - 1);
  call.check();
  return !waited;
}

}  // namespace

int main() {
  ::alarm(150);
  tasks_of_many_callers();
  left_alone(0);
  left_alone(1);
  at_once();
  children();
  copies_of_many_calls();
  // Where processors are short its caller may sleep until both have ended.
  if (!short_beside_long() && !short_beside_long() && !short_beside_long()) wrong("a short call waited for a long one");
  std::printf("all right\n");
}
