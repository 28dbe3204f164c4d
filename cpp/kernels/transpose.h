// Transpose at the speed of memory: blocks are turned in registers, staged, and written in runs of whole lines.
//
// Without the stage, neighbouring output rows are written a few floats at a time; with a power-of-two row length they
// fall into the same few sets of L1 and every line is written back and read again several times.
#pragma once

#include "core/context.h"
#include "core/problem.h"
#include "plan/cpu_blocking.h"
#include "runtime/thread_pool.h"

namespace fl {
namespace {

// Results larger than this do not fit the caches: written past them, they need not be read first.
constexpr int64_t stream_from = int64_t(16) << 20;

struct Plane {  // b[j * b_rs + i] = a[i * a_rs + j]
  int64_t m, n;
  const float* a;
  int64_t a_rs;
  float* b;
  int64_t b_rs;
};

// The block that is staged, measured on 2048x512, 4096x4096, 10007x4099 and 1000000x16. With a power-of-two row length
// all source rows share a few sets of every cache: one line of each, and no prefetch, which would evict what it
// fetched.
struct Cut {
  int64_t rows, columns;
  bool stream, prefetch;
  bool by_columns = false;  // strips of columns of the source are the tasks
};
inline Cut choose_cut(const TransposeArgs& p, int threads) {
  const bool stream = 4 * p.m * p.n * p.batch > stream_from;
  if (p.n <= 16 || (stream && p.a.rs % 1024 == 0)) return {128, 16, stream, false};
  if (stream) return {stage_rows, stage_columns, true, true};
  // Several threads, all in the caches: a thread keeps to some rows of the result, else their lines move from core to
  // core (2048x512 on two threads: 111 us, 200 by strips of source rows; on one thread those are faster, 195 to 233).
  if (threads > 1 && p.n >= 64 * threads) return {stage_rows, 32, false, false, true};
  return {128, 64, false, false};
}

// stage[j * pitch + i] = a[i * rs + j]
template <class S>
void turn_to_stage(const float* a, int64_t rs, int64_t rows, int64_t columns, float* stage, int64_t pitch,
                   bool prefetch) {
  int64_t i = 0;
  for (; i + S::block <= rows; i += S::block) {
    int64_t j = 0;
    for (; j + S::block <= columns; j += S::block) {
      if (prefetch && j % 16 == 0)
        for (int q = 0; q < S::block; ++q) __builtin_prefetch(a + (i + 8 + q) * rs + j);
      S::transpose(a + i * rs + j, rs, S::block, stage + j * pitch + i, pitch);
    }
    for (; j < columns; ++j)
      for (int64_t q = i; q < i + S::block; ++q) stage[j * pitch + q] = a[q * rs + j];
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) stage[j * pitch + i] = a[i * rs + j];
}

template <class S>
void turn_block(const Plane& p, int64_t i0, int64_t rows, int64_t j0, int64_t columns, float* stage, const Cut& cut) {
  const int64_t pitch = cut.rows + 16;
  turn_to_stage<S>(p.a + i0 * p.a_rs + j0, p.a_rs, rows, columns, stage, pitch, cut.prefetch);
  for (int64_t j = 0; j < columns; ++j) S::copy(p.b + (j0 + j) * p.b_rs + i0, stage + j * pitch, rows, cut.stream);
}

template <class S>
void turn(const TransposeArgs& p, const Context& context) {
  const Cut cut = choose_cut(p, context.threads);
  const int64_t row_blocks = ceil_div(p.m, cut.rows), column_blocks = ceil_div(p.n, cut.columns);
  // A task is a strip of rows; if there are too few, one of columns.
  const bool by_rows = !cut.by_columns && (row_blocks >= 4 * context.threads || row_blocks >= column_blocks);
  const int64_t strips = by_rows ? row_blocks : column_blocks, steps = by_rows ? column_blocks : row_blocks;
  auto task = [&](int64_t index, int slot) {
    const int64_t batch = index / strips, strip = index % strips;
    float* const stage = static_cast<float*>(context.workspace) + slot * int64_t(stage_bytes / sizeof(float));
    const Plane plane{p.m, p.n, p.a.data + batch * p.a.bs, p.a.rs, p.b.data + batch * p.b.bs, p.b.rs};
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t i = (by_rows ? strip : step) * cut.rows, j = (by_rows ? step : strip) * cut.columns;
      const int64_t rows = p.m - i < cut.rows ? p.m - i : cut.rows,
                    columns = p.n - j < cut.columns ? p.n - j : cut.columns;
      turn_block<S>(plane, i, rows, j, columns, stage, cut);
    }
    if (cut.stream) S::fence();
  };
  parallel_for(p.batch * strips, context.threads, task);
}

// Row j of the result is a contiguous column of A already, or the other way round: nothing has to be turned.
template <class S>
void copy_rows(const TransposeArgs& p, const Context& context) {
  const bool columns = p.b.cs == 1;  // b(j, :) = a(:, j); otherwise b(:, i) = a(i, :)
  const int64_t lines = columns ? p.n : p.m, length = columns ? p.m : p.n;
  const int64_t from = columns ? p.a.cs : p.a.rs, to = columns ? p.b.rs : p.b.cs;
  const bool stream = 4 * p.m * p.n * p.batch > stream_from && length >= 64;
  const int64_t group = length >= 65536 ? 1 : 65536 / length, groups = ceil_div(lines, group);
  auto task = [&](int64_t index, int) {
    const int64_t batch = index / groups, first = index % groups * group,
                  last = first + group < lines ? first + group : lines;
    for (int64_t l = first; l < last; ++l)
      S::copy(p.b.data + batch * p.b.bs + l * to, p.a.data + batch * p.a.bs + l * from, length, stream);
    if (stream) S::fence();
  };
  parallel_for(p.batch * groups, context.threads, task);
}

// Any strides, in blocks that keep the lines of both sides in L1.
inline void turn_strided(const TransposeArgs& p, const Context& context) {
  constexpr int64_t side = 16;
  const int64_t strips = ceil_div(p.n, side);
  auto task = [&](int64_t index, int) {
    const float* const a = p.a.data + index / strips * p.a.bs;
    float* const b = p.b.data + index / strips * p.b.bs;
    const int64_t first = index % strips * side, last = first + side < p.n ? first + side : p.n;
    for (int64_t i0 = 0; i0 < p.m; i0 += side)
      for (int64_t j = first; j < last; ++j)
        for (int64_t i = i0; i < p.m && i < i0 + side; ++i) b[j * p.b.rs + i * p.b.cs] = a[i * p.a.rs + j * p.a.cs];
  };
  parallel_for(p.batch * strips, context.threads, task);
}

// ---------------------------------------------------------------- a square matrix onto itself
constexpr int64_t exchanged = 64;  // the side of a tile; two of them are staged

// The tile at (i, j) and its mirror image change places.
template <class S>
void exchange_tiles(float* b, int64_t rs, int64_t size, int64_t i, int64_t j, float* stage) {
  constexpr int64_t pitch = exchanged + 16;
  float *const one = b + i * rs + j, *const other = b + j * rs + i, *const second = stage + exchanged * pitch;
  const int64_t rows = size - i < exchanged ? size - i : exchanged,
                columns = size - j < exchanged ? size - j : exchanged;
  turn_to_stage<S>(one, rs, rows, columns, stage, pitch, false);
  if (i != j) turn_to_stage<S>(other, rs, columns, rows, second, pitch, false);
  for (int64_t c = 0; c < columns; ++c) S::copy(other + c * rs, stage + c * pitch, rows, false);
  if (i == j) return;
  for (int64_t r = 0; r < rows; ++r) S::copy(one + r * rs, second + r * pitch, columns, false);
}
inline void exchange_elements(const Matrix& b, int64_t size, int64_t i0, int64_t j0) {
  for (int64_t i = i0; i < size && i < i0 + exchanged; ++i)
    for (int64_t j = j0; j < i && j < j0 + exchanged; ++j) {
      float &one = b.data[i * b.rs + j * b.cs], &other = b.data[j * b.rs + i * b.cs];
      const float kept = one;
      one = other, other = kept;
    }
}

template <class S>
void exchange(const TransposeArgs& p, const Context& context) {
  const int64_t side = ceil_div(p.m, exchanged), pairs = side * (side + 1) / 2;
  auto task = [&](int64_t index, int slot) {
    const Matrix b{p.b.data + index / pairs * p.b.bs, p.b.rs, p.b.cs};
    int64_t column = index % pairs, row = 0;  // of the lower triangle of tiles
    while (column > row) column -= ++row;
    if (b.cs != 1) return exchange_elements(b, p.m, row * exchanged, column * exchanged);
    float* const stage = static_cast<float*>(context.workspace) + slot * int64_t(stage_bytes / sizeof(float));
    exchange_tiles<S>(b.data, b.rs, p.m, row * exchanged, column * exchanged, stage);
  };
  parallel_for(p.batch * pairs, context.threads, task);
}

template <class S>
void transpose(TransposeArgs p, Context context) {
  // Below half a megabyte waking a thread takes longer than the work. In place every line belongs to two rows of tiles,
  // and moves from core to core while the caches hold it all (1024x1024: 308 us on one thread, 356 on two).
  if (p.m * p.n * p.batch < (p.in_place ? 1 << 21 : 65536)) context.threads = 1;
  if (p.in_place) return exchange<S>(p, context);
  if (p.a.cs == 1 && p.b.cs == 1) return turn<S>(p, context);
  if (p.a.rs == 1 && p.b.rs == 1) {  // two column-major operands are two row-major ones with m and n exchanged
    const TransposeArgs exchanged{p.n, p.m, p.batch, {p.a.data, p.a.cs, 1, p.a.bs}, {p.b.data, p.b.cs, 1, p.b.bs}};
    return turn<S>(exchanged, context);
  }
  if ((p.a.rs == 1 && p.b.cs == 1) || (p.a.cs == 1 && p.b.rs == 1)) return copy_rows<S>(p, context);
  turn_strided(p, context);
}

}  // namespace
}  // namespace fl
