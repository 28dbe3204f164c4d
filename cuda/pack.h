// Copies between an operand in host memory, with any strides, and the packed form in which it travels. No CUDA in here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

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

  int64_t total() const { return batch * lines; }
  bool empty() const { return total() == 0 || length == 0; }
};

// What one chunk of staging memory carries: elements [from, from + length) of lines [first, first + lines), counted
// through all batches.
struct Piece {
  int64_t first, lines, from, length;
};

// Cuts an operand into pieces of at most `capacity` floats with their padding: whole lines, or parts of one long line.
template <class T>
class Pieces {
 public:
  Pieces(const Lines<T>& operand, int64_t capacity)
      : total_(operand.total()),
        length_(operand.length),
        capacity_(capacity),
        lines_(std::max<int64_t>(capacity / operand.ld, 1)),
        cuts_(operand.ld <= capacity ? 1 : (operand.length + capacity - 1) / capacity) {}

  int64_t count() const { return (total_ + lines_ - 1) / lines_ * cuts_; }
  Piece operator[](int64_t i) const {
    if (cuts_ == 1) return {i * lines_, std::min(lines_, total_ - i * lines_), 0, length_};
    const int64_t from = i % cuts_ * capacity_;
    return {i / cuts_, 1, from, std::min(capacity_, length_ - from)};
  }

 private:
  int64_t total_, length_, capacity_, lines_, cuts_;
};

// Floats from a piece's first element to its last, in the packed form: the padding between its lines, none after them.
inline int64_t packed_size(const Piece& piece, int64_t ld) { return (piece.lines - 1) * ld + piece.length; }

// One rectangle of elements from strides to strides. If either side has no unit step, it goes tile by tile, so that
// each cache line fetched for one element of a strided side is still there when its neighbours are due.
inline void copy_lines(const float* from, int64_t from_line, int64_t from_step, float* to, int64_t to_line,
                       int64_t to_step, int64_t lines, int64_t length) {
  if (from_step == 1 && to_step == 1) {
    for (int64_t l = 0; l < lines; ++l)
      std::memcpy(to + l * to_line, from + l * from_line, std::size_t(length) * sizeof(float));
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

inline void pack(const Lines<const float>& operand, const Piece& piece, float* packed) {
  for_each_batch(operand, piece, [&](const float* host, int64_t done, int64_t lines) {
    copy_lines(host, operand.line_stride, operand.step, packed + done * operand.ld, operand.ld, 1, lines, piece.length);
  });
}

// Writes the elements of the operand and nothing between them.
inline void unpack(const float* packed, const Lines<float>& operand, const Piece& piece) {
  for_each_batch(operand, piece, [&](float* host, int64_t done, int64_t lines) {
    copy_lines(packed + done * operand.ld, operand.ld, 1, host, operand.line_stride, operand.step, lines, piece.length);
  });
}

}  // namespace fl::cuda
