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

template <class S>
class TermPacker {
  using U = typename BitVector<S::W>::V;
  typedef typename S::V V;
  static constexpr int64_t half = 16;                           // lines or places of k of a tile
  static constexpr int64_t tile = 256, step_floats = 6 * tile;  // in numbers of 32 bits
  static constexpr int64_t ahead = 2 * term_step;               // how far what is read is fetched before
  static constexpr int64_t stage_floats = term_step * term_step + 16;

 public:
  // to[...] = the strip of `lines` rows of A: a(i, k) = a[i * rs + k * cs].
  void rows(float* to, const float* a, int64_t rs, int64_t cs, int64_t lines, int64_t depth) {
    for_each_step<true>(to, a, rs, cs, lines, depth, [&](float* step, const float* from, int64_t pitch, int64_t left) {
      for (int64_t i = 0; i < lines; ++i) {
        const float* const x = from + i * pitch;
        fetch(x + ahead, x + half + ahead);
        pair(step + i / half * tile + i % half * half, x, left, x + half, left - half);
      }
    });
  }
  // The same of columns of B: b(k, j) = b[k * rs + j * cs].
  void columns(float* to, const float* b, int64_t rs, int64_t cs, int64_t lines, int64_t depth) {
    for_each_step<false>(to, b, rs, cs, lines, depth, [&](float* step, const float* from, int64_t pitch, int64_t left) {
      for (int64_t d = 0; d < half; ++d)
        for (int64_t h = 0; h < 2; ++h) {
          const float *const x = from + d * pitch + h * half, *const y = x + half * pitch;
          const int64_t there = lines - h * half;
          fetch(x + ahead * pitch, y + ahead * pitch);
          pair(step + h * tile + d * half, x, d < left ? there : 0, y, d + half < left ? there : 0);
        }
    });
  }

 private:
  // pairs() for every 32 k, of which `left` exist, and the range in front of them. Vectors run along k or along the
  // lines; where the numbers of a vector do not lie side by side, the step is staged.
  template <bool along_k, class Pairs>
  void for_each_step(float* to, const float* x, int64_t rs, int64_t cs, int64_t lines, int64_t depth, Pairs&& pairs) {
    float stage[stage_floats];
    most_ = U{}, least_ = ~U{};
    float* step = to + term_header;
    for (int64_t k = 0; k < depth; k += term_step, step += step_floats) {
      const int64_t left = depth - k < term_step ? depth - k : term_step;
      const float* from = x + k * (along_k ? cs : rs);
      int64_t pitch = rs;
      if (cs != 1) {
        pack_strip<S>(stage, term_step, along_k ? left : lines, from, cs, rs, along_k ? lines : left);
        from = stage, pitch = term_step;
      }
      pairs(step, from, pitch, left);
    }
    store_range(to);
  }
  void store_range(float* to) const {
    TermRange range{0, ~0u};
    for (int l = 0; l < S::W; ++l) {
      if (most_[l] > range.most) range.most = most_[l];
      if (least_[l] < range.least) range.least = least_[l];
    }
    memcpy(to, &range, sizeof range);
  }

  static void fetch(const float* x, const float* y) {
    __builtin_prefetch(x, 0, 2);
    __builtin_prefetch(y, 0, 2);
  }
  // Sixteen pairs: the terms of x[l], of which nx exist, in the lower halves and those of y[l] in the upper ones.
  void pair(float* to, const float* x, int64_t nx, const float* y, int64_t ny) {
    if (nx >= half && ny >= half) {
      for (int64_t l = 0; l < half; l += S::W) put(to + l, (U)S::load(x + l), (U)S::load(y + l));
    } else {
      for (int64_t l = 0; l < half; l += S::W) {
        U u, v;
        load_first(u, x + l, nx - l);
        load_first(v, y + l, ny - l);
        put(to + l, u, v);
      }
    }
  }
  static void load_first(U& u, const float* p, int64_t n) {
    u = (U)(n >= S::W ? S::load(p) : n > 0 ? S::load_part(p, S::mask(n)) : S::zero());
  }
  void see(const U& x) {
    const U magnitude = x & 0x7fffffffu, less = magnitude - 1;
    most_ = most_ > magnitude ? most_ : magnitude;
    least_ = least_ < less ? least_ : less;
  }
  // The term of what is left of x, and what is left then.
  static void next_term(U& term, U& x) {
    term = (x + 0x8000u) & 0xffff0000u;
    x = (U)((V)x - (V)term);
  }
  void put(float* to, U x, U y) {
    see(x), see(y);
    for (int term = 0; term < 2; ++term) {
      U u, v;
      next_term(u, x), next_term(v, y);
      store(to + term * 2 * tile, u, v);
    }
    store(to + 4 * tile, x, y);
  }
  static void store(float* to, const U& x, const U& y) {
    const U pairs = (x >> 16) | (y & 0xffff0000u);
    memcpy(to, &pairs, sizeof pairs);
  }

  U most_, least_;
};

}  // namespace
}  // namespace fl
