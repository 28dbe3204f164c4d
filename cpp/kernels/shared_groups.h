// How the threads of a call of a packed SGEMM share its groups of columns: they take parts of a group, strips of rows
// or rows of squares, until none is left, and share nothing but how many are taken.
#pragma once

#include "block_product.h"
#include "runtime/thread_pool.h"

namespace fl {
namespace {

// Derived has whole(batch, slot), which computes a product of a batch alone, and work_on(group, slot), which takes
// parts of a group as long as there are any. A slot is a thread's; its buffers are buffers(slot).
template <class Derived, class Cut>
class SharedGroups {
 public:
  SharedGroups(const SgemmArgs& p, const Cut& cut, const PackLayout& layout, const Context& context)
      : p_(p),
        cut_(cut),
        layout_(layout),
        workspace_(static_cast<float*>(context.workspace)),
        threads_(context.threads),
        watch_(context.watch),
        prepacked_(context.prepacked),
        groups_(cut.groups * p.batch) {}

  void run() {
    auto* const self = static_cast<Derived*>(this);
    if (!cut_.shared) {
      auto task = [&](int64_t batch, int slot) { self->whole(batch, slot); };
      return parallel_for(p_.batch, threads_, task);
    }
    for (int64_t g = 0; g < groups_; ++g) *taken(g) = 0;
    auto take_part = [&](int64_t index, int slot) {
      for (int64_t i = 0; i < groups_; ++i) self->work_on((index * groups_ / threads_ + i) % groups_, slot);
    };
    parallel_for(threads_, threads_, take_part);
  }

 protected:
  int64_t sharing() const { return larger(1, threads_ / groups_); }  // threads on a group, about

  // The next part of a group, which size_of(begin) says the size of: 0 if nothing is left.
  template <class SizeOf>
  Split::Part take_next(int64_t group, SizeOf&& size_of) {
    int64_t begin = __atomic_load_n(taken(group), __ATOMIC_RELAXED), size;
    do {
      size = size_of(begin);
      if (size <= 0) return {0, 0};
    } while (
        !__atomic_compare_exchange_n(taken(group), &begin, begin + size, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return {begin, size};
  }
  Buffers buffers(int slot) const {
    float* const own = workspace_ + layout_.counters + slot * layout_.floats;
    return {own, own + layout_.a_floats, prepacked_};
  }
  Waiting waiting(int slot) const { return {watch_, slot}; }

  const SgemmArgs& p_;
  const Cut& cut_;

 private:
  // Not std::atomic: an inline function of the standard library that this instruction set is compiled for could
  // replace everyone's.
  int64_t* taken(int64_t group) const { return reinterpret_cast<int64_t*>(workspace_ + group * counter_floats); }

  const PackLayout& layout_;
  float* workspace_;
  int threads_;
  Watch* watch_;
  const PrepackedOperands* prepacked_;
  int64_t groups_;
};

}  // namespace
}  // namespace fl
