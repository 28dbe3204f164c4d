// Copies a strip of an operand into the order in which the micro-kernel reads it. One routine serves A and B, whatever
// their strides and type: a transposed operand is packed, not copied first, and so is one of 16 bits.
#pragma once

#include <stdint.h>

#include <type_traits>

#include "stored.h"

namespace fl {
namespace {

template <class S, class T>
void pack_widened(float* dst, int64_t width, int64_t count, const T* src, int64_t is, int64_t depth);

// dst[l * width + i] = src[i * is + l * ls] for i < count, l < depth; 0 for count <= i < width.
// Up to one vector beyond the end of dst is overwritten: strips are packed in ascending order and the buffer has slack.
template <class S, class T>
void pack_strip(float* dst, int64_t width, int64_t count, const T* src, int64_t is, int64_t ls, int64_t depth) {
  if (is == 1) {
    const int64_t vectors = (width + S::W - 1) / S::W;
    for (int64_t l = 0; l < depth; ++l) {
      const T* s = src + l * ls;
      float* d = dst + l * width;
      __builtin_prefetch(s + 24 * ls, 0, 2);
      __builtin_prefetch(s + 24 * ls + width - 1, 0, 2);
      for (int64_t v = 0; v < vectors; ++v) {
        const int64_t n = count - v * S::W;
        S::store(d + v * S::W, n >= S::W ? S::load(s + v * S::W)
                               : n > 0   ? S::load_part(s + v * S::W, S::mask(n))
                                         : S::zero());
      }
    }
    return;
  }
  int64_t l = 0;
  if constexpr (!std::is_same_v<T, float>) {
    if (ls == 1) return pack_widened<S>(dst, width, count, src, is, depth);
  } else if (ls == 1) {
    // The last group of rows first: what it writes past its row is then overwritten by the first group of the next one.
    const int64_t groups = (width + S::block - 1) / S::block;
    for (; l + S::block <= depth; l += S::block) {
      for (int64_t g = groups - 1; g >= 0; --g) {
        const int64_t i = g * S::block, rows = count - i;
        S::transpose(src + i * is + l, is,
                     rows >= S::block ? S::block
                     : rows < 0       ? 0
                                      : int(rows),
                     dst + l * width + i, width);
      }
    }
  }
  for (; l < depth; ++l) {
    for (int64_t i = 0; i < count; ++i) dst[l * width + i] = to_float(src[i * is + l * ls]);
    for (int64_t i = count; i < width; ++i) dst[l * width + i] = 0.0f;
  }
}

// `lines` lines of `length` contiguous elements, as float32 in lines `pitch` apart.
template <class S, class T>
void widen_lines(float* to, int64_t pitch, const T* from, int64_t line, int64_t lines, int64_t length) {
  for (int64_t i = 0; i < lines; ++i, from += line, to += pitch) {
    int64_t q = 0;
    for (; q + S::W <= length; q += S::W) S::store(to + q, S::load(from + q));
    for (; q < length; ++q) to[q] = to_float(from[q]);
  }
}

// Lines of another type that are to be transposed: some KiB at a time as float32 first.
template <class S, class T>
void pack_widened(float* dst, int64_t width, int64_t count, const T* src, int64_t is, int64_t depth) {
  constexpr int64_t chunk = 128, most_lines = 32;
  float staged[most_lines * chunk];
  for (int64_t l = 0; l < depth; l += chunk) {
    const int64_t here = depth - l < chunk ? depth - l : chunk;
    widen_lines<S>(staged, chunk, src + l, is, count, here);
    pack_strip<S>(dst + l * width, width, count, staged, chunk, 1, here);
  }
}

// Several strips of a transposed A at once, so that whole lines of the source are read: strip r has rows(r) rows and
// begins where the one before ends, in the source and in dst. Four at a time: more would share one L1 set at common
// depths.
template <class S, class T, class Rows>
void pack_strips_transposed(float* dst, const T* src, int64_t ls, int64_t depth, int64_t strips, Rows rows) {
  constexpr int64_t at_once = 4;
  for (int64_t first = 0; first < strips; first += at_once) {
    const int64_t here = strips - first < at_once ? strips - first : at_once;
    float *to[at_once], *end[at_once];
    int64_t count[at_once], width = 0;
    for (int64_t r = 0; r < here; ++r) {
      count[r] = rows(first + r);
      to[r] = r == 0 ? dst : to[r - 1] + count[r - 1] * depth;
      end[r] = to[r] + count[r] * depth;
      width += count[r];
    }
    for (int64_t l = 0; l < depth; ++l) {
      const T *s = src + l * ls, *const past = s + width;
      for (int64_t i = 0; i < width; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(s + 16 * ls + i, 0, 2);
      for (int64_t r = 0; r < here; ++r) {
        // What a store writes past its row is overwritten by the next rows, but beyond the last one is another strip.
        for (int64_t i = 0; i < count[r]; i += S::W) {
          const int64_t n = count[r] - i;
          const typename S::V v = past - s - i >= S::W ? S::load(s + i) : S::load_part(s + i, S::mask(n));
          if (to[r] + i + S::W > end[r]) S::store_part(to[r] + i, v, n);
          else S::store(to[r] + i, v);
        }
        to[r] += count[r];
        s += count[r];
      }
    }
    src += width;
    dst += width * depth;
  }
}

}  // namespace
}  // namespace fl
