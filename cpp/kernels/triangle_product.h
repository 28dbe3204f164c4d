// The packed SGEMM of a symmetric product: the squares of C on the diagonal and below it are computed, the others are
// their mirror images. The order of the sums is that of every other SGEMM, and a product of two numbers does not depend
// on which comes first, so the bits are those of the general product.
//
// Both operands are packed, each as the tile reads it: strips of MR rows that lie in L2, panels of NR columns. Reading
// A from the panels of B, by strips that divide them, would save its packing, which costs as much as 9 columns, and
// cost tiles of 11 rows in place of 14.
#pragma once

#include "block_product.h"
#include "plan/triangle_cut.h"
#include "shared_groups.h"

namespace fl {
namespace {

// Mirrors what is left of the diagonal to its right.
template <class S>
class Mirror {
  static constexpr int64_t line = 16, most_rows = 128, pitch = most_rows + 16;

 public:
  Mirror(float* c, int64_t rs, int64_t cs) : c_(c), rs_(rs), cs_(cs) {}

  // The rectangle at (i, j), m rows by n columns, below the diagonal. Sixteen columns at a time are transposed on the
  // stack and written in runs of m floats: whole lines but at their ends.
  void rectangle(int64_t i, int64_t m, int64_t j, int64_t n) const {
    if (cs_ != 1) return elements(i, m, j, n);
    for (int64_t top = i; top < i + m; top += most_rows)
      for (int64_t left = j; left < j + n; left += line)
        staged(top, smaller(most_rows, i + m - top), left, smaller(line, j + n - left));
  }
  // The square at (i, i), m rows, on the diagonal.
  void square(int64_t i, int64_t m) const {
    for (int64_t b = 0; b < m; b += line) {
      const int64_t rows = smaller(line, m - b);
      if (b) rectangle(i + b, rows, i, b);
      for (int64_t q = 1; q < rows; ++q) elements(i + b + q, 1, i + b, q);
    }
  }

  // To L2: what rectangle() will write.
  void fetch(int64_t i, int64_t m, int64_t j, int64_t n) const {
    if (cs_ != 1) return;
    for (int64_t q = j; q < j + n; ++q) {
      for (int64_t r = 0; r < m; r += line) __builtin_prefetch(at(q, i + r), 0, 2);
      __builtin_prefetch(at(q, i + m - 1), 0, 2);
    }
  }

 private:
  float* at(int64_t i, int64_t j) const { return c_ + i * rs_ + j * cs_; }
  void elements(int64_t i, int64_t m, int64_t j, int64_t n) const {
    for (int64_t q = j; q < j + n; ++q)
      for (int64_t r = i; r < i + m; ++r) *at(q, r) = *at(r, q);
  }
  void staged(int64_t i, int64_t m, int64_t j, int64_t n) const {
    float stage[line * pitch];
    const int64_t whole_rows = m / S::block * S::block, whole_columns = n / S::block * S::block;
    for (int64_t r = 0; r < whole_rows; r += S::block)
      for (int64_t q = 0; q < whole_columns; q += S::block)
        S::transpose(at(i + r, j + q), rs_, S::block, stage + q * pitch + r, pitch);
    for (int64_t q = 0; q < whole_columns; ++q) put(at(j + q, i), stage + q * pitch, whole_rows);
    elements(i + whole_rows, m - whole_rows, j, n);
    elements(i, whole_rows, j + whole_columns, n - whole_columns);
  }
  static void put(float* to, const float* from, int64_t n) {
    for (int64_t q = 0; q < n; q += S::W) S::store_part(to + q, S::load(from + q), n - q);
  }

  float* c_;
  int64_t rs_, cs_;
};

template <class S>
class TriangleProduct : BlockProduct<S> {
  using Base = BlockProduct<S>;
  static constexpr int64_t NR = S::NV * S::W;
  static constexpr CpuBlocking blocking = S::blocking;

 public:
  TriangleProduct(const SgemmArgs& p, int64_t batch, Buffers buffers, Waiting waiting, const TriangleCut& cut)
      : Base(p, batch, buffers, waiting), cut_(cut), mirror_(this->c_, p.c.rs, p.c.cs) {}

  // Rows of squares [top, bottom) of the columns of squares [left, right), and their mirror images. `packed`: an
  // earlier call for the same columns has gone lower, and B is kept.
  void run(int64_t top, int64_t bottom, int64_t left, int64_t right, bool packed) {
    const int64_t behind = smaller(right * cut_.side, this->p_.n);
    const int64_t chunk = cut_.keep ? behind : columns_at_once(blocking, cut_);
    for (int64_t j = left * cut_.side; j < behind; j += chunk) {
      const int64_t n = smaller(chunk, behind - j), padded = ceil_div(n, NR) * NR;
      for (int64_t k = 0; k < this->p_.k; k += blocking.KC)
        run_slice(top, bottom, j, n, k, this->buffers_.b + (cut_.keep ? k * padded : 0), packed);
    }
  }

 private:
  // KC terms of the sums of columns [j, j + n), from the lowest squares up: they need all of B, which is packed while
  // they are multiplied.
  void run_slice(int64_t top, int64_t bottom, int64_t j, int64_t n, int64_t k, float* b, bool packed) {
    for (int64_t s = bottom; s-- > top; packed = true) {
      const int64_t i = s * cut_.side, m = smaller(cut_.side, this->p_.m - i);
      if (i + m <= j || !this->waiting_.goes_on(2 * m * smaller(n, i + m - j) * blocking.KC)) return;
      run_square(Block{i, m, j, smaller(n, i + m - j)}, k, b, packed);
    }
  }
  // The rows of a square times the columns up to its end on the diagonal.
  void run_square(const Block& block, int64_t k, float* b, bool packed) {
    const int64_t depth = smaller(blocking.KC, this->p_.k - k);
    const bool last = k + depth == this->p_.k;
    const Split strips{block.m, ceil_div(block.m, S::MR)};
    this->pack_rows(block, strips, 0, strips.parts, k, depth);
    bool ready = packed;
    for (int64_t c = 0, first = 0; c < block.n; c += NR) {
      while (block.i + strips.begin(first + 1) <= block.j + c) ++first;  // strips that end above the panel's diagonal
      const int64_t j = block.j + c, n = smaller(NR, block.n - c);
      const bool beside = last && j < block.i;  // of the square on the diagonal
      if (beside) mirror_.fetch(block.i, block.m, j, n);
      const typename Base::Strips taken{first, strips.parts, this->buffers_.a + strips.begin(first) * depth,
                                        block.i - j};
      ready = this->run_panel(block, strips, taken, k, depth, c, b + c * depth, ready, !packed) || packed;
      if (beside) mirror_.rectangle(block.i, block.m, j, n);
    }
    if (last && block.i < block.j + block.n) mirror_.square(block.i, block.m);
  }

  const TriangleCut& cut_;
  Mirror<S> mirror_;
};

// The parts that threads take of a group are rows of squares.
template <class S>
class SharedTriangles : public SharedGroups<SharedTriangles<S>, TriangleCut> {
  using Base = SharedGroups<SharedTriangles<S>, TriangleCut>;
  friend Base;
  using Base::cut_;

 public:
  using Base::Base;

 private:
  void whole(int64_t batch, int slot) { product(batch, slot).run(0, cut_.squares, 0, cut_.squares, false); }
  void work_on(int64_t group, int slot) {
    const int64_t left = cut_.begin(group % cut_.groups), right = cut_.begin(group % cut_.groups + 1);
    TriangleProduct<S> triangle = product(group / cut_.groups, slot);
    bool packed = false;
    for (Split::Part part; (part = take(group, cut_.squares - left)).size > 0; packed = cut_.keep) {
      const int64_t bottom = cut_.squares - part.begin;
      triangle.run(bottom - part.size, bottom, left, right, packed);
    }
  }
  // Of `rows` rows of squares, from the lowest up. What a thread takes at once is up to half of what would be its share
  // of what is left: of a triangle, whose lowest rows are the longest, a quarter of its share of the rows.
  Split::Part take(int64_t group, int64_t rows) {
    return this->take_next(group, [&](int64_t begin) -> int64_t {
      if (begin >= rows) return 0;
      return larger(1, (rows - begin) / (4 * this->sharing()));
    });
  }
  TriangleProduct<S> product(int64_t batch, int slot) const {
    return {this->p_, batch, this->buffers(slot), this->waiting(slot), cut_};
  }
};

template <class S>
void symmetric_sgemm(const SgemmArgs& p, const Context& context) {
  const TriangleCut cut = triangle_cut(p, S::blocking, context.threads);
  SharedTriangles<S>(p, cut, pack_layout(p, S::blocking, cut), context).run();
}

}  // namespace
}  // namespace fl
