// The copies of a call between the caller's memory and the pinned rings, cut into parts that any number of threads take
// in turn. No CUDA in here: one thread drives the device, and says which slots of the rings the copies may use.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "cuda/launch/pack.h"

namespace fl::cuda {

struct Packing {
  const Lines<const float>* operand;
  Piece piece;
  float* packed;
  int64_t pitch;
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
  void close();  // hands out no more, and returns when all that were taken are done

 private:
  alignas(128) std::atomic<int64_t> next_{0};
  alignas(128) std::atomic<int64_t> limit_{0};
  alignas(128) std::atomic<int64_t> done_{0};
};

class HostCopies {
 public:
  // `fresh` is the memory of the result if that is contiguous. Its pages are faulted in by threads that find nothing to
  // copy, 2 MiB each, and in any case before something is copied there: all threads that fault a huge page clear it.
  HostCopies(std::vector<Packing> in, std::vector<Unpacking> out, Stores stores, void* fresh, std::size_t fresh_bytes);

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
  std::size_t fault_in();
  bool faults_first(int helper, int of) const { return faulters_ * helper < of; }

 private:
  using Counter = std::atomic<int>;
  enum class PageState : unsigned char { unknown, taken, there };
  static bool done(const Counter& left) { return left.load(std::memory_order_acquire) == 0; }
  void fault_in(std::size_t page);
  void have_pages(const Unpacking& copy, const Piece& part);

  std::vector<Packing> in_;
  std::vector<Unpacking> out_;
  std::unique_ptr<Counter[]> in_left_, out_left_;  // parts that are not done
  std::size_t demoted_;                            // how many copies in
  int faulters_;                                   // one of so many helpers faults pages in first
  Stores stores_;
  char *fresh_, *fresh_end_;
  std::size_t first_page_, pages_;  // of `fresh`, 2 MiB each
  std::unique_ptr<std::atomic<PageState>[]> states_;
  Tickets in_tickets_, out_tickets_, fault_tickets_;
};

}  // namespace fl::cuda
