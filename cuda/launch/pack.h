// Copies between an operand in host memory, with any strides, and the packed form in which it travels. No CUDA in here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "core/element.h"

namespace fl::cuda {

// An operand as the lines that lie contiguous on the device: the rows of a C-ordered matrix, the columns of an
// F-ordered one, the vectors of a batch. Element e of line l of batch b is data[b * bs + l * line_stride + e * step].
// On the device line l of batch b starts at (b * lines + l) * ld.
template <class T>
struct Lines {
  T* data = nullptr;
  int64_t batch = 0, lines = 0, length = 0;
  int64_t bs = 0, line_stride = 0, step = 1;
  int64_t ld = 0;
  Stored stored = {};  // what the caller's memory holds, of an operand that is read

  int64_t total() const { return batch * lines; }
  bool empty() const { return total() == 0 || length == 0; }
};

// Elements [from, from + length) of lines [first, first + lines), counted through all batches. Packed, its lines lie
// one after the other, at a pitch that whoever packs it chooses.
struct Piece {
  int64_t first = 0, lines = 0, from = 0, length = 0;
  bool empty() const { return lines <= 0 || length <= 0; }
};

// Part number `part` of a piece cut into `parts` for as many threads, by lines or, if those are few, within each line.
// May be empty.
inline Piece part_of(const Piece& piece, int64_t part, int64_t parts) {
  if (piece.lines >= parts) {
    const int64_t begin = piece.lines * part / parts, end = piece.lines * (part + 1) / parts;
    return {piece.first + begin, end - begin, piece.from, piece.length};
  }
  constexpr int64_t unit = 64;  // floats
  const int64_t cuts = parts / piece.lines, line = part / cuts, cut = part % cuts;
  if (line >= piece.lines) return {};
  const int64_t size = (piece.length + cuts * unit - 1) / (cuts * unit) * unit;
  return {piece.first + line, 1, piece.from + cut * size, std::min(size, piece.length - cut * size)};
}

// Stores past the cache: what is written is not read into it first, and leaves the packed pieces in it.
inline void copy_past_cache(float* to, const float* from, int64_t count) {
#if defined(__x86_64__)
  int64_t i = 0;
  for (; i < count && reinterpret_cast<uintptr_t>(to + i) % 64 != 0; ++i) to[i] = from[i];
  for (; i + 16 <= count; i += 16) {
    const __m128 v0 = _mm_loadu_ps(from + i), v1 = _mm_loadu_ps(from + i + 4);
    const __m128 v2 = _mm_loadu_ps(from + i + 8), v3 = _mm_loadu_ps(from + i + 12);
    _mm_stream_ps(to + i, v0);
    _mm_stream_ps(to + i + 4, v1);
    _mm_stream_ps(to + i + 8, v2);
    _mm_stream_ps(to + i + 12, v3);
  }
  for (; i < count; ++i) to[i] = from[i];
#else
  std::memcpy(to, from, std::size_t(count) * sizeof(float));
#endif
}
inline void finish_copies_past_cache() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Moves what a thread has just written from its own cache to the one that all share. The device reads it from there at
// the speed of the link, and from another core's cache at half of that (docs/notes/host_pipeline.md). A processor that
// does not know the instruction (CLDEMOTE) takes it for a no-operation.
inline void move_to_shared_cache(const float* data, int64_t count) {
#if defined(__x86_64__)
  const char* const end = reinterpret_cast<const char*>(data + count);
  for (const char* line = reinterpret_cast<const char*>(data); line < end; line += 64)
    asm volatile(".byte 0x0f, 0x1c, 0x00" ::"a"(line) : "memory");  // cldemote (%rax)
#else
  static_cast<void>(data), static_cast<void>(count);
#endif
}

enum class Stores { cached, past_cache };

inline void copy_run(const float* from, float* to, int64_t count, Stores stores) {
  if (stores == Stores::past_cache) copy_past_cache(to, from, count);
  else std::memcpy(to, from, std::size_t(count) * sizeof(float));
}
inline void copy_run(const uint16_t* from, uint16_t* to, int64_t count, Stores) {
  std::memcpy(to, from, std::size_t(count) * sizeof(uint16_t));
}

// One rectangle of elements from strides to strides. If either side has no unit step, it goes tile by tile, so that
// each cache line fetched for one element of a strided side is still there when its neighbours are due.
template <class T>
void copy_lines(const T* from, int64_t from_line, int64_t from_step, T* to, int64_t to_line, int64_t to_step,
                int64_t lines, int64_t length, Stores stores) {
  if (from_step == 1 && to_step == 1) {
    if (from_line == length && to_line == length) return copy_run(from, to, lines * length, stores);
    for (int64_t l = 0; l < lines; ++l) copy_run(from + l * from_line, to + l * to_line, length, stores);
    return;
  }
  constexpr int64_t TILE = 16;  // floats in a cache line
  for (int64_t l0 = 0; l0 < lines; l0 += TILE) {
    const int64_t l1 = std::min(l0 + TILE, lines);
    for (int64_t e0 = 0; e0 < length; e0 += TILE) {
      const int64_t e1 = std::min(e0 + TILE, length);
      for (int64_t l = l0; l < l1; ++l)
        for (int64_t e = e0; e < e1; ++e) to[l * to_line + e * to_step] = from[l * from_line + e * from_step];
    }
  }
}

// Calls copy(host, done, lines) for the part of a piece in each batch: `lines` lines from `host` on are the piece's
// lines from number `done` on.
template <class T, class Copy>
void for_each_batch(const Lines<T>& operand, const Piece& piece, Copy copy) {
  for (int64_t done = 0; done < piece.lines;) {
    const int64_t batch = (piece.first + done) / operand.lines, line = (piece.first + done) % operand.lines;
    const int64_t lines = std::min(piece.lines - done, operand.lines - line);
    copy(operand.data + batch * operand.bs + line * operand.line_stride + piece.from * operand.step, done, lines);
    done += lines;
  }
}

// On the way what is stored as another type becomes float32.
template <class T>
void pack(const Lines<T>& operand, const Piece& piece, float* packed, int64_t pitch) {
  const OverflowWatch watch(operand.stored);
  for_each_batch(operand, piece, [&](const float* host, int64_t done, int64_t lines) {
    if (operand.stored.converted())
      convert(operand.stored, host, operand.line_stride, operand.step, packed + done * pitch, pitch, lines,
              piece.length);
    else
      copy_lines(host, operand.line_stride, operand.step, packed + done * pitch, pitch, 1, lines, piece.length,
                 Stores::cached);
  });
}

// Of an operand in 16 bits, as it is.
inline void pack_halves(const Lines<const float>& operand, const Piece& piece, uint16_t* packed, int64_t pitch) {
  for_each_batch(operand, piece, [&](const float* host, int64_t done, int64_t lines) {
    const float* const origin = operand.stored.origin;
    const auto* const from = reinterpret_cast<const uint16_t*>(origin) + (host - origin);
    copy_lines(from, operand.line_stride, operand.step, packed + done * pitch, pitch, 1, lines, piece.length,
               Stores::cached);
  });
}

// Writes the elements of the operand and nothing between them.
inline void unpack(const float* packed, int64_t pitch, const Lines<float>& operand, const Piece& piece, Stores stores) {
  for_each_batch(operand, piece, [&](float* host, int64_t done, int64_t lines) {
    copy_lines(packed + done * pitch, pitch, 1, host, operand.line_stride, operand.step, lines, piece.length, stores);
  });
}

}  // namespace fl::cuda
