// Operands as three bf16 terms, in the order in which the tiles are loaded.
//
// A strip is 32 lines (rows of A or columns of B) of a slice of k. It begins with 64 bytes that say the range of its
// numbers. Then, for every 32 k, a step, it has six tiles of 1 KiB: the first terms of lines 0 to 15 and of lines 16 to
// 31, the second, the third. A tile of A has a row for each line, one of B for each pair of k, as TDPBF16PS takes them.
// Pair d of a step is k = d and k = d + 16, in both operands: then vectors of float32 numbers become vectors of pairs
// without a shuffle.
//
// x = hi + mid + lo, exactly: each of the first two is what is left, rounded to 8 bits (half away from zero), and of 24
// bits the third has at most 7. |mid| <= 2^-8 |x|, |lo| <= 2^-17 |x|.
#pragma once

#include <stdint.h>
#include <string.h>

#include "../pack.h"
#include "plan/cpu_blocking.h"

namespace fl {
namespace {

// The magnitudes of a strip as their bits: `least` is the smallest that is not zero, less one; of zeros alone, the
// largest number there is.
struct TermRange {
  uint32_t most, least;
};

// The bits of a vector of floats.
template <int W>
struct BitVector;
template <>
struct BitVector<4> {
  typedef uint32_t V __attribute__((vector_size(16)));
};
template <>
struct BitVector<16> {
  typedef uint32_t V __attribute__((vector_size(64)));
};

// The pairs of vectors of a strip, one after the other: all that packing does but the edges, for whoever has
// instructions to put it between. Kept in registers, so this is a value to copy, not to refer to.
template <class S>
class TermPairs {
  using U = typename BitVector<S::W>::V;
  typedef typename S::V V;
  static constexpr int64_t tile = 256;  // in numbers of 32 bits

 public:
  static constexpr int64_t half = 16;  // pairs of vectors of a tile

  // The terms of sixteen numbers x in the lower halves, and of as many y in the upper ones.
  inline __attribute__((always_inline)) void next() {
    if (ahead_) {
      __builtin_prefetch(x_ + ahead_, 0, 2);
      __builtin_prefetch(x_ + other_ + ahead_, 0, 2);
    }
    for (int term = 0; term < 3; ++term) __builtin_prefetch(to_ + ahead_to_ + term * 2 * tile, 1, 3);
    for (int64_t l = 0; l < half; l += S::W) put(to_ + l, (U)S::load(x_ + l), (U)S::load(x_ + other_ + l));
    x_ += dx_, to_ += dto_;
    if (--row_ == 0) turn();
  }
  // Of the numbers nx and ny exist.
  void part(float* to, const float* x, const float* y, int64_t nx, int64_t ny) {
    for (int64_t l = 0; l < half; l += S::W) {
      U u, v;
      load_first(u, x + l, nx - l);
      load_first(v, y + l, ny - l);
      put(to + l, u, v);
    }
  }

 private:
  template <class>
  friend class TermPacker;

  static void load_first(U& u, const float* p, int64_t n) {
    u = (U)(n >= S::W ? S::load(p) : n > 0 ? S::load_part(p, S::mask(n)) : S::zero());
  }
  inline __attribute__((always_inline)) void see(const U& x) {
    const U magnitude = x & 0x7fffffffu, less = magnitude - 1;
    most_ = most_ > magnitude ? most_ : magnitude;
    least_ = least_ < less ? least_ : less;
  }
  // The term of what is left of x, and what is left then.
  static inline __attribute__((always_inline)) void next_term(U& term, U& x) {
    term = (x + 0x8000u) & 0xffff0000u;
    x = (U)((V)x - (V)term);
  }
  inline __attribute__((always_inline)) void put(float* to, U x, U y) {
    see(x), see(y);
    for (int term = 0; term < 2; ++term) {
      U u, v;
      next_term(u, x), next_term(v, y);
      store(to + term * 2 * tile, u, v);
    }
    store(to + 4 * tile, x, y);
  }
  static inline __attribute__((always_inline)) void store(float* to, const U& x, const U& y) {
    const U pairs = (x >> 16) | (y & 0xffff0000u);
    memcpy(to, &pairs, sizeof pairs);
  }

  void turn() {
    x_ += jump_[0], to_ += jump_to_[0], row_ = rows_;
    swap(jump_), swap(jump_to_);
  }
  static void swap(int64_t (&pair)[2]) {
    const int64_t first = pair[0];
    pair[0] = pair[1], pair[1] = first;
  }

  // From x to y, and to what is fetched of both; from where its terms go to what is fetched there, as stores that wait
  // for L1 would keep tiles waiting; from x, and where its terms go, to the next ones; after so many of them one of two
  // jumps by turns.
  const float* x_ = nullptr;
  float* to_ = nullptr;
  int64_t other_ = 0, ahead_ = 0, ahead_to_ = 0, dx_ = 0, dto_ = 0;
  int64_t row_ = 1, rows_ = 1, jump_[2] = {}, jump_to_[2] = {};
  U most_, least_;
};

// Packs a strip, some pairs at a time or all that is left.
template <class S>
class TermPacker {
  using U = typename BitVector<S::W>::V;
  static constexpr int64_t half = TermPairs<S>::half, step_floats = 6 * 256;

 public:
  // to[...] = the strip of `lines` rows of A: a(i, k) = a[i * rs + k * cs].
  void begin_rows(float* to, const float* a, int64_t rs, int64_t cs, int64_t lines, int64_t depth) {
    begin(to, a, rs, cs, lines, depth, true);
  }
  // The same of columns of B: b(k, j) = b[k * rs + j * cs].
  void begin_columns(float* to, const float* b, int64_t rs, int64_t cs, int64_t lines, int64_t depth) {
    begin(to, b, cs, rs, lines, depth, false);
  }
  // All that is left.
  void finish() {
    if (!to_) return;
    TermPairs<S> pairs = pairs_;
    for (; left_ > 0; --left_) pairs.next();
    pairs_ = pairs;
    for (; k_ < depth_; k_ += term_step) pack_step();
    store_range();
    to_ = nullptr;
  }

  // Whether there are so many pairs to put between other instructions.
  bool has(int64_t count) const { return left_ >= count; }
  // The next pairs, and back what is left of them when so many are packed.
  TermPairs<S> take() const { return pairs_; }
  void put_back(const TermPairs<S>& pairs, int64_t count) { pairs_ = pairs, left_ -= count; }

 private:
  // Vectors run along k or along the lines. Where their numbers lie side by side, what is whole is left to pairs_: of A
  // line by line, which the processor fetches ahead by itself.
  void begin(float* to, const float* x, int64_t line, int64_t along, int64_t lines, int64_t depth, bool along_k) {
    to_ = to, from_ = x, line_ = line, along_ = along, lines_ = lines, depth_ = depth, along_k_ = along_k;
    k_ = left_ = 0;
    pairs_.most_ = U{}, pairs_.least_ = ~U{};
    const int64_t steps = depth / term_step, pitch = along;
    if (steps == 0 || (along_k ? along : line) != 1 || (!along_k && lines < term_step)) return;
    pairs_.x_ = x, pairs_.to_ = to + term_header;
    if (along_k) {
      left_ = lines * steps;
      pairs_.other_ = half, pairs_.ahead_ = 0, pairs_.ahead_to_ = half, pairs_.dx_ = term_step,
      pairs_.dto_ = step_floats, pairs_.rows_ = steps;
      for (int t = 0; t < 2; ++t) {
        pairs_.jump_[t] = line - steps * term_step;
        pairs_.jump_to_[t] = half - steps * step_floats;
      }
    } else {
      left_ = term_step * steps;
      pairs_.other_ = half * pitch, pairs_.ahead_ = 2 * term_step * pitch, pairs_.ahead_to_ = 4 * half,
      pairs_.dx_ = pitch, pairs_.dto_ = half, pairs_.rows_ = half;
      pairs_.jump_[0] = half - half * pitch, pairs_.jump_[1] = half * pitch - half;
      pairs_.jump_to_[0] = 0, pairs_.jump_to_[1] = step_floats - 2 * half * half;
    }
    pairs_.row_ = pairs_.rows_;
    k_ = steps * term_step;
  }
  // The step at k_, which is at an edge or not in order: staged then.
  void pack_step() {
    const int64_t left = depth_ - k_ < term_step ? depth_ - k_ : term_step;
    const float* from = from_ + k_ * along_;
    int64_t pitch = along_k_ ? line_ : along_;
    if ((along_k_ ? along_ : line_) != 1) {
      if (along_k_) pack_strip<S>(stage_, term_step, left, from, along_, line_, lines_);
      else pack_strip<S>(stage_, term_step, lines_, from, line_, along_, left);
      from = stage_, pitch = term_step;
    }
    float* to = to_ + term_header + k_ / term_step * step_floats;
    for (int64_t q = 0; q < term_step; ++q, to += half) {
      if (along_k_) {
        const float* const x = from + q * pitch;
        if (q < lines_) pairs_.part(to, x, x + half, left, left - half);
      } else {
        const int64_t d = q % half, h = q / half, there = lines_ - h * half;
        const float* const x = from + d * pitch + h * half;
        pairs_.part(to, x, x + half * pitch, d < left ? there : 0, d + half < left ? there : 0);
      }
    }
  }
  void store_range() {
    TermRange range{0, ~0u};
    for (int l = 0; l < S::W; ++l) {
      if (pairs_.most_[l] > range.most) range.most = pairs_.most_[l];
      if (pairs_.least_[l] < range.least) range.least = pairs_.least_[l];
    }
    memcpy(to_, &range, sizeof range);
  }

  float* to_ = nullptr;  // null where there is nothing to pack
  const float* from_ = nullptr;
  int64_t line_ = 0, along_ = 0, lines_ = 0, depth_ = 0, k_ = 0;  // k_: what begins after the pairs
  bool along_k_ = false;
  int64_t left_ = 0;  // pairs
  TermPairs<S> pairs_;
  float stage_[term_step * term_step + 16];
};

}  // namespace
}  // namespace fl
