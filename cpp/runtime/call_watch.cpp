#include "runtime/call_watch.h"

#include <algorithm>
#include <utility>

#include "runtime/per_thread.h"

namespace fl {
namespace {

struct OfThread {
  CallWatch* watch = nullptr;
};
std::atomic<int64_t> interval_us{50'000};

}  // namespace

std::chrono::microseconds watch_interval() { return std::chrono::microseconds(interval_us.load()); }
void set_watch_interval(std::chrono::microseconds interval) { interval_us = interval.count(); }

CallWatch::CallWatch(double steps, std::function<bool(double)> look)
    : Watch{[](Watch& watch, int64_t done, int slot) { return static_cast<CallWatch&>(watch).add(done, slot == 0); }},
      all_steps_(steps),
      look_(std::move(look)),
      before_(set_current(this)) {}

CallWatch::~CallWatch() { set_current(before_); }

CallWatch* CallWatch::current() {
  const OfThread* const own = per_thread<OfThread>();
  return own ? own->watch : nullptr;
}

CallWatch* CallWatch::set_current(CallWatch* watch) {
  OfThread* const own = per_thread<OfThread>();
  return own ? std::exchange(own->watch, watch) : nullptr;  // without memory nobody watches
}

bool CallWatch::add(int64_t steps, bool is_caller) {
  const int64_t done = steps_.fetch_add(steps, std::memory_order_relaxed);
  if (!is_caller || ended()) return !ended();
  return Clock::now() < next_ || look_at(double(done) / all_steps_);
}

bool CallWatch::look_at(double done) {
  reached_ = std::max(reached_, std::min(done, 1.0));
  set_current(nullptr);
  if (!look_(reached_)) ended_ = true;
  set_current(this);
  next_ = Clock::now() + watch_interval();
  return !ended();
}

}  // namespace fl
