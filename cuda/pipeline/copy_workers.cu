#include "cuda/pipeline/copy_workers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runtime/huge_pages.h"

namespace fl::cuda {
namespace {

constexpr int64_t parts = 16;  // of one copy: each thread of a large machine gets one

void pause() {
#if defined(__x86_64__)
  for (int i = 0; i < 8; ++i) _mm_pause();
#elif defined(__aarch64__)
  for (int i = 0; i < 8; ++i) asm volatile("yield");
#endif
}

// Of a small call everything is moved to the shared cache: the device follows the workers closely. In a large one the
// ring is full soon, and what waits in it leaves the cores' caches by itself: moving all of it costs 2 % at n = 8192,
// and up to half into a fresh result. Then it is the begin alone.
constexpr int64_t small_call = (int64_t{48} << 20) / sizeof(float),
                  begin_of_large = (int64_t{16} << 20) / sizeof(float);

int64_t floats_in(const std::vector<Packing>& in) {
  int64_t total = 0;
  for (const Packing& copy : in) total += copy.piece.lines * copy.pitch;
  return total;
}

std::size_t count_demoted(const std::vector<Packing>& in) {
  const int64_t total = floats_in(in), most = total <= small_call ? total : begin_of_large;
  std::size_t count = 0;
  for (int64_t floats = 0; count < in.size() && floats < most; ++count)
    floats += in[count].piece.lines * in[count].pitch;
  return count;
}

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

std::unique_ptr<std::atomic<int>[]> counters(std::size_t count) {
  auto result = std::make_unique<std::atomic<int>[]>(count);
  for (std::size_t i = 0; i < count; ++i) result[i].store(parts, std::memory_order_relaxed);
  return result;
}

}  // namespace

bool Tickets::take(int64_t& ticket) {
  ticket = next_.load(std::memory_order_relaxed);
  while (ticket < limit_.load(std::memory_order_acquire))
    if (next_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) return true;
  return false;
}

CopyWorkers::CopyWorkers(std::vector<Packing> in, std::vector<Unpacking> out, Stores stores, void* fresh,
                         std::size_t fresh_bytes)
    : in_(std::move(in)),
      out_(std::move(out)),
      in_left_(counters(in_.size())),
      out_left_(counters(out_.size())),
      demoted_(count_demoted(in_)),
      faulters_(floats_in(in_) <= small_call ? 3 : 6),
      stores_(stores),
      fresh_(static_cast<char*>(fresh)),
      fresh_end_(fresh_ + fresh_bytes),
      first_page_(address(fresh_) / huge_page),
      pages_(fresh ? (address(fresh_end_) + huge_page - 1) / huge_page - first_page_ : 0),
      states_(std::make_unique<std::atomic<PageState>[]>(pages_)) {
  fault_tickets_.allow(int64_t(pages_));
}

void CopyWorkers::allow_in(std::size_t copies) { in_tickets_.allow(int64_t(std::min(copies, in_.size())) * parts); }
void CopyWorkers::allow_out(std::size_t copies) { out_tickets_.allow(int64_t(std::min(copies, out_.size())) * parts); }

bool CopyWorkers::copy_in() {
  int64_t ticket;
  if (!in_tickets_.take(ticket)) return false;
  const auto number = std::size_t(ticket / parts);
  const Packing& copy = in_[number];
  const Piece part = part_of(copy.piece, ticket % parts, parts);
  if (!part.empty()) {
    float* const to = copy.packed + (part.first - copy.piece.first) * copy.pitch + part.from - copy.piece.from;
    pack(*copy.operand, part, to, copy.pitch);
    if (number < demoted_) move_to_shared_cache(to, (part.lines - 1) * copy.pitch + part.length);
  }
  in_left_[number].fetch_sub(1, std::memory_order_release);
  return true;
}

bool CopyWorkers::copy_out() {
  int64_t ticket;
  if (!out_tickets_.take(ticket)) return false;
  const auto number = std::size_t(ticket / parts);
  const Unpacking& copy = out_[number];
  const Piece part = part_of(copy.piece, ticket % parts, parts);
  if (!part.empty()) {
    if (pages_ > 0) have_pages(copy, part);
    unpack(copy.packed + (part.first - copy.piece.first) * copy.pitch + part.from - copy.piece.from, copy.pitch,
           *copy.operand, part, stores_);
  }
  if (stores_ == Stores::past_cache) finish_copies_past_cache();
  out_left_[number].fetch_sub(1, std::memory_order_release);
  return true;
}

// Harmless for pages that are there already, and without effect where the system does not know the request.
void CopyWorkers::fault_in(std::size_t page) {
  constexpr uintptr_t small_page = 4096;
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14; not in every C library's headers
  PageState expected = PageState::unknown;
  if (!states_[page].compare_exchange_strong(expected, PageState::taken, std::memory_order_relaxed)) return;
  const uintptr_t begin = (first_page_ + page) * huge_page;
  const uintptr_t from = (std::max(address(fresh_), begin) + small_page - 1) / small_page * small_page;
  const uintptr_t to = std::min(address(fresh_end_), begin + huge_page) / small_page * small_page;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, populate_write);
  states_[page].store(PageState::there, std::memory_order_release);
}

bool CopyWorkers::fault_in() {
  int64_t ticket;
  if (!fault_tickets_.take(ticket)) return false;
  fault_in(std::size_t(ticket));
  return true;
}

// What another thread is clearing takes it 0.2 ms; meanwhile this one clears what is needed next.
void CopyWorkers::have_pages(const Unpacking& copy, const Piece& part) {
  const Lines<float>& to = *copy.operand;
  const auto page_of = [&](int64_t line, int64_t index) {
    const float* const element = to.data + line / to.lines * to.bs + line % to.lines * to.line_stride + index;
    return address(element) / huge_page - first_page_;
  };
  const std::size_t last = page_of(part.first + part.lines - 1, part.from + part.length - 1);
  for (std::size_t page = page_of(part.first, part.from); page <= last; ++page) {
    fault_in(page);
    while (states_[page].load(std::memory_order_acquire) != PageState::there)
      if (!fault_in()) pause();
  }
}

// Copies out come first, since a slot that is full stops the device. Some of the helpers fault pages in before they
// copy in, so that the first copies out find theirs: a third of them, or a sixth in a large call, where there is time
// (4096 into a fresh result 3.26 and 3.16 ms, 2048 1.01 and 1.08).
void CopyWorkers::work(int helper, int of) {
  helpers_.fetch_add(1, std::memory_order_relaxed);
  const bool faults_first = faulters_ * helper < of;
  while (!stop_.load(std::memory_order_acquire)) {
    if (copy_out()) continue;
    if (faults_first ? fault_in() || copy_in() : copy_in() || fault_in()) continue;
    pause();
  }
}

}  // namespace fl::cuda
