// The copies of a call between the caller's memory and the pinned rings, cut into parts that any number of threads take
// in turn. No CUDA in here: one thread drives the device, and says which slots of the rings the copies may use.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "cuda/launch/pack.h"

namespace fl::cuda {

struct Packing {  // of what is stored in 16 bits as it is, the rest as float32
  const Lines<const float>* operand;
  Piece piece;
  float* packed;
  int64_t pitch;  // in elements
};
struct Unpacking {
  const float* packed;
  int64_t pitch;
  const Lines<float>* operand;
  Piece piece;
};

// Numbers handed out in order, each once, up to a limit that only grows.
class Tickets {
 public:
  bool take(int64_t& ticket);
  void done() { done_.fetch_add(1, std::memory_order_release); }  // with a ticket that was taken
  void allow(int64_t limit) { limit_.store(limit, std::memory_order_release); }
  void close();  // hands out no more, and returns when all that were taken are done. Again it does nothing

 private:
  alignas(128) std::atomic<int64_t> next_{0};
  alignas(128) std::atomic<int64_t> limit_{0};
  alignas(128) std::atomic<int64_t> done_{0};
  bool closed_ = false;
};

// The pages of a result that may be fresh, 2 MiB each. They are faulted in by threads that find nothing to copy, and in
// any case before something is copied there: all threads that fault a huge page clear it.
class FreshPages {
 public:
  FreshPages(void* memory, std::size_t bytes);  // no memory: there are none

  std::size_t fault_in();                         // the bytes of one page, 0 if all have been taken
  void have(const float* from, const float* to);  // returns when the pages from one element to another are there
  void close() { tickets_.close(); }              // fault_in() does nothing any more

 private:
  enum class State : unsigned char { unknown, taken, there };
  void fault_in(std::size_t page);
  std::size_t page_of(const float* element) const;

  char *begin_, *end_;
  std::size_t first_, count_;  // pages
  std::unique_ptr<std::atomic<State>[]> states_;
  Tickets tickets_;
};

// Those of a call on one device.
class HostCopies {
 public:
  // `fresh` are the pages of the result, for all devices of the call: what closes the copies for one closes them.
  HostCopies(std::vector<Packing> in, std::vector<Unpacking> out, Stores stores, std::shared_ptr<FreshPages> fresh);

  // ---- the driver's side. Copies are carried out roughly in order.
  void allow_in(std::size_t copies);  // the slots of the first so many copies in are free
  bool in_done(std::size_t copy) const { return done(in_left_[copy]); }
  void allow_out(std::size_t copies);  // the first so many copies out have their data
  bool out_done(std::size_t copy) const { return done(out_left_[copy]); }
  // Afterwards nothing touches the memory of the caller and the rings any more, whoever still knows this object.
  void close();

  // ---- anyone's. The bytes of one part that was done, 0 if there was none to do.
  std::size_t copy_some();
  std::size_t copy_in();
  std::size_t copy_out();
  std::size_t fault_in() { return fresh_->fault_in(); }
  bool faults_first(int helper, int of) const { return faulters_ * helper < of; }

 private:
  using Counter = std::atomic<int>;
  static bool done(const Counter& left) { return left.load(std::memory_order_acquire) == 0; }
  void have_pages(const Unpacking& copy, const Piece& part);

  std::vector<Packing> in_;
  std::vector<Unpacking> out_;
  std::unique_ptr<Counter[]> in_left_, out_left_;  // parts that are not done
  std::size_t demoted_;                            // how many copies in
  int faulters_;                                   // one of so many helpers faults pages in first
  Stores stores_;
  std::shared_ptr<FreshPages> fresh_;
  Tickets in_tickets_, out_tickets_;
};

}  // namespace fl::cuda
