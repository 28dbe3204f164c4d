#include "cuda/pipeline/host_copies.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/huge_pages.h"
#include "runtime/pause.h"

namespace fl::cuda {
namespace {

constexpr int64_t parts = 16;  // of one copy: each thread of a large machine gets one

// Of a small call everything is moved to the shared cache: the device follows the workers closely. In a large one the
// ring is full soon, and what waits in it leaves the cores' caches by itself: moving all of it costs 2 % at n = 8192,
// and up to half into a fresh result. Then it is the begin alone.
constexpr int64_t small_copy = (int64_t{48} << 20) / sizeof(float),
                  begin_of_large = (int64_t{16} << 20) / sizeof(float);

int64_t floats_in(const std::vector<Packing>& in) {
  int64_t total = 0;
  for (const Packing& copy : in) total += copy.piece.lines * copy.pitch;
  return total;
}

std::size_t count_demoted(const std::vector<Packing>& in) {
  const int64_t total = floats_in(in), most = total <= small_copy ? total : begin_of_large;
  std::size_t count = 0;
  for (int64_t floats = 0; count < in.size() && floats < most; ++count)
    floats += in[count].piece.lines * in[count].pitch;
  return count;
}

std::size_t bytes_of(const Piece& part) { return std::size_t(part.lines * part.length) * sizeof(float); }

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

std::unique_ptr<std::atomic<int>[]> counters(std::size_t count) {
  auto result = std::make_unique<std::atomic<int>[]>(count);
  for (std::size_t i = 0; i < count; ++i) result[i].store(parts, std::memory_order_relaxed);
  return result;
}

// Writes what is there. As the fault of a plain store this waits for no other thread's: 14 threads cleared 1 GiB in 20
// ms, and in 119 by MADV_POPULATE_WRITE, which holds the lock of the whole address space (3 threads: 54 and 66).
void touch(void* p) {
#if defined(__x86_64__)
  asm volatile("lock; orb $0, (%0)" ::"r"(p) : "memory", "cc");
#else
  static_cast<void>(p);
#endif
}

}  // namespace

bool Tickets::take(int64_t& ticket) {
  ticket = next_.load(std::memory_order_relaxed);
  while (ticket < limit_.load(std::memory_order_acquire))
    if (next_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) return true;
  return false;
}

void Tickets::close() {
  if (std::exchange(closed_, true)) return;
  const int64_t taken = next_.exchange(INT64_MAX / 2, std::memory_order_acq_rel);
  wait_until([&] { return done_.load(std::memory_order_acquire) >= taken; });
}

// ---------------------------------------------------------------- pages
FreshPages::FreshPages(void* memory, std::size_t bytes)
    : begin_(static_cast<char*>(memory)),
      end_(begin_ + bytes),
      first_(address(begin_) / huge_page),
      count_(memory ? (address(end_) + huge_page - 1) / huge_page - first_ : 0),
      states_(std::make_unique<std::atomic<State>[]>(count_)) {
  tickets_.allow(int64_t(count_));
}

// Harmless for pages that are there already, and without effect where the system does not know the request. The first
// small page brings a huge one with it; where there are none, the request does the rest.
void FreshPages::fault_in(std::size_t page) {
  constexpr uintptr_t small_page = 4096;
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14; not in every C library's headers
  State expected = State::unknown;
  if (!states_[page].compare_exchange_strong(expected, State::taken, std::memory_order_relaxed)) return;
  const uintptr_t begin = (first_ + page) * huge_page;
  const uintptr_t from = (std::max(address(begin_), begin) + small_page - 1) / small_page * small_page;
  const uintptr_t to = std::min(address(end_), begin + huge_page) / small_page * small_page;
  if (from < to) {
    touch(reinterpret_cast<void*>(from));
    ::madvise(reinterpret_cast<void*>(from), to - from, populate_write);
  }
  states_[page].store(State::there, std::memory_order_release);
}

std::size_t FreshPages::fault_in() {
  int64_t ticket;
  if (!tickets_.take(ticket)) return 0;
  fault_in(std::size_t(ticket));
  tickets_.done();
  return huge_page;
}

std::size_t FreshPages::page_of(const float* element) const { return address(element) / huge_page - first_; }

// What another thread is clearing takes it 0.2 ms; meanwhile this one clears what is needed next.
void FreshPages::have(const float* from, const float* to) {
  if (count_ == 0) return;
  for (std::size_t page = page_of(from); page <= page_of(to); ++page) {
    fault_in(page);
    while (states_[page].load(std::memory_order_acquire) != State::there)
      if (!fault_in()) pause();
  }
}

// ---------------------------------------------------------------- copies
HostCopies::HostCopies(std::vector<Packing> in, std::vector<Unpacking> out, Stores stores,
                       std::shared_ptr<FreshPages> fresh)
    : in_(std::move(in)),
      out_(std::move(out)),
      in_left_(counters(in_.size())),
      out_left_(counters(out_.size())),
      demoted_(count_demoted(in_)),
      faulters_(floats_in(in_) <= small_copy ? 3 : 6),
      stores_(stores),
      fresh_(std::move(fresh)) {}

void HostCopies::allow_in(std::size_t copies) { in_tickets_.allow(int64_t(std::min(copies, in_.size())) * parts); }
void HostCopies::allow_out(std::size_t copies) { out_tickets_.allow(int64_t(std::min(copies, out_.size())) * parts); }

// The next part of some copies, by act(number of the copy, part).
template <class Copy, class Act>
static std::size_t next_part(Tickets& tickets, const std::vector<Copy>& copies, std::atomic<int>* left, Act&& act) {
  int64_t ticket;
  if (!tickets.take(ticket)) return 0;
  const auto number = std::size_t(ticket / parts);
  const Piece part = part_of(copies[number].piece, ticket % parts, parts);
  if (!part.empty()) act(number, part);
  left[number].fetch_sub(1, std::memory_order_release);
  tickets.done();
  return std::max<std::size_t>(bytes_of(part), 1);
}

std::size_t HostCopies::copy_in() {
  return next_part(in_tickets_, in_, in_left_.get(), [this](std::size_t number, const Piece& part) {
    const Packing& copy = in_[number];
    const int64_t begin = (part.first - copy.piece.first) * copy.pitch + part.from - copy.piece.from;
    const int64_t count = (part.lines - 1) * copy.pitch + part.length;
    if (copy.operand->stored.in_16_bits()) {
      uint16_t* const to = reinterpret_cast<uint16_t*>(copy.packed) + begin;
      pack_halves(*copy.operand, part, to, copy.pitch);
      if (number < demoted_) move_to_shared_cache(reinterpret_cast<float*>(to), (count + 1) / 2);
    } else {
      pack(*copy.operand, part, copy.packed + begin, copy.pitch);
      if (number < demoted_) move_to_shared_cache(copy.packed + begin, count);
    }
  });
}

std::size_t HostCopies::copy_out() {
  return next_part(out_tickets_, out_, out_left_.get(), [this](std::size_t number, const Piece& part) {
    const Unpacking& copy = out_[number];
    have_pages(copy, part);
    unpack(copy.packed + (part.first - copy.piece.first) * copy.pitch + part.from - copy.piece.from, copy.pitch,
           *copy.operand, part, stores_);
    if (stores_ == Stores::past_cache) finish_copies_past_cache();
  });
}

void HostCopies::have_pages(const Unpacking& copy, const Piece& part) {
  const Lines<float>& to = *copy.operand;
  const auto element = [&](int64_t line, int64_t index) {
    return to.data + line / to.lines * to.bs + line % to.lines * to.line_stride + index;
  };
  fresh_->have(element(part.first, part.from), element(part.first + part.lines - 1, part.from + part.length - 1));
}

// Copies out come first, since a slot that is full stops the device.
std::size_t HostCopies::copy_some() {
  const std::size_t bytes = copy_out();
  return bytes ? bytes : copy_in();
}

void HostCopies::close() {
  in_tickets_.close();
  out_tickets_.close();
  fresh_->close();
}

}  // namespace fl::cuda
