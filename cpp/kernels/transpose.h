// Transpose at the speed of memory: blocks are transposed in registers, staged, and written in runs of whole lines.
//
// Without the stage, neighbouring output rows are written a few floats at a time; with a power-of-two row length they
// fall into the same few sets of L1 and every line is written back and read again several times.
#pragma once

#include "core/context.h"
#include "core/problem.h"
#include "plan/cpu_blocking.h"
#include "runtime/cache_sizes.h"
#include "runtime/thread_pool.h"

namespace fl {
namespace {

// The operand and the result both pass through the last level, which other cores use too. What does not fit is written
// past the caches, so that it need not be read first. A last level of hundreds of MiB is shared by so many cores that
// for one of them a line that is read to be written costs as much as from memory: there the limit is what L2 may hold.
constexpr int64_t largest_near_cache = 128 << 20, near_one_core = 6 << 20;
inline bool far_cache() { return int64_t(last_level_cache()) > largest_near_cache; }
inline int64_t bytes_of(const TransposeArgs& p) { return 8 * p.m * p.n * p.batch; }
inline bool beyond_caches(const TransposeArgs& p) {
  return bytes_of(p) > (far_cache() ? near_one_core : int64_t(last_level_cache()) / 2);
}

// How a call is cut into blocks, each of which is staged. `far`: beyond the caches, so that runs are streamed where S
// can. `fetch`: while a block is transposed, the next one is fetched. `down`: that is the one below, else the one
// beside.
struct Cut {
  int64_t rows, columns;
  bool far, fetch = far, down = false;
};
// Blocks as wide as the operand follow each other in memory. It is then read best in ascending order, lines ahead.
inline bool wide_run(const TransposeArgs& p) { return p.n > 48 && p.n <= 128 && p.a.rs == p.n; }
template <class S>
Cut choose_cut(const TransposeArgs& p, int threads) {
  if (beyond_caches(p)) {
    const bool fetch = !far_cache() || bytes_of(p) > largest_near_cache / 2;
    if (p.n <= 16) return {S::streams ? 64 : 128, 16, true, fetch};
    if (wide_run(p)) return {256, 128, true, fetch};
    if (p.m <= 64 || (p.m > 256 && p.n > 48)) return {64, 64, true, fetch};
    return {256, p.n <= 48 ? p.n : 32, true, fetch};
  }
  if (p.n <= 16) return {128, 16, false};
  // Several threads: each keeps to some rows of the result, else their lines move from core to core.
  return {128, 64, false, false, threads > 1 && p.n >= 64 * threads};
}

// Where a block begins.
struct Place {
  int64_t batch, i, j;
};

// The blocks of a call in the order in which they are transposed.
struct Blocks {
  Blocks(const TransposeArgs& args, const Cut& how, bool streams) : p(args), cut(how) {
    const bool on_lines = p.b.rs % 16 == 0 && p.b.bs % 16 == 0 && reinterpret_cast<uintptr_t>(p.b.data) % 64 == 0;
    overlap = streams && cut.far && !on_lines ? 16 : 0;
    row_blocks = ceil_div(p.m, cut.rows), column_blocks = ceil_div(p.n, cut.columns);
    count = row_blocks * column_blocks * p.batch;
  }
  Place at(int64_t index) const {
    const int64_t in_row = cut.down ? row_blocks : column_blocks, of_matrix = row_blocks * column_blocks;
    const int64_t outer = index % of_matrix / in_row, inner = index % in_row;
    return {index / of_matrix, (cut.down ? inner : outer) * cut.rows, (cut.down ? outer : inner) * cut.columns};
  }
  int64_t above(const Place& at) const { return at.i ? overlap : 0; }
  const float* source(const Place& at) const {
    return p.a.data + at.batch * p.a.bs + (at.i - above(at)) * p.a.rs + at.j;
  }

  // What is fetched while a block is transposed.
  const float* ahead(const Place& at, const Place& next) const {
    return wide_run(p) ? source(at) + 8 * p.a.rs : source(next);
  }

  const TransposeArgs& p;
  const Cut cut;
  // Rows that a block has in common with the one above it. Runs that are streamed then begin and end at lines, wherever
  // the rows of the result do. A line written in two parts is read twice, and holds up the stores behind it: 0.3 to 0.7
  // of a copy at 10007x4099.
  int64_t overlap;
  int64_t row_blocks, column_blocks, count;
};

// What has fewer rows or columns than S::block.
template <class S>
void transpose_edge(const float* a, int64_t rs, int64_t rows, int64_t columns, float* stage, int64_t pitch) {
  if constexpr (requires { S::transpose_part(a, rs, rows, columns, stage, pitch); }) {
    for (int64_t j = 0; j < columns; j += S::block)
      S::transpose_part(a + j, rs, rows, columns - j, stage + j * pitch, pitch);
  } else if (rows < S::block) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) stage[j * pitch + i] = a[i * rs + j];
  } else {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < S::block; ++i) stage[j * pitch + i] = a[i * rs + j];
  }
}

// To L2: a block of rows a power of two apart is more than the few sets of L1 that it falls into.
inline void fetch(const float* p) { __builtin_prefetch(p, 0, 2); }

// stage[j * pitch + i] = a[i * rs + j]. Meanwhile the block at `next` is fetched, if any.
template <class S>
void transpose_to_stage(const float* a, int64_t rs, int64_t rows, int64_t columns, float* stage, int64_t pitch,
                        const float* next) {
  int64_t i = 0;
  for (; i + S::block <= rows; i += S::block) {
    int64_t j = 0;
    for (; j + S::block <= columns; j += S::block) {
      if (next && j % 16 == 0)
        for (int q = 0; q < S::block; ++q) fetch(next + (i + q) * rs + j);
      S::transpose(a + i * rs + j, rs, S::block, stage + j * pitch + i, pitch);
    }
    if (j < columns) transpose_edge<S>(a + i * rs + j, rs, S::block, columns - j, stage + j * pitch + i, pitch);
    if (next)  // the line more that rows have which do not begin at one
      for (int q = 0; q < S::block; ++q) fetch(next + (i + q) * rs + columns - 1);
  }
  if (i < rows) transpose_edge<S>(a + i * rs, rs, rows - i, columns, stage + i, pitch);
}

// How far behind the beginning of a line it is, in floats.
inline int64_t in_line(const float* p) { return int64_t(reinterpret_cast<uintptr_t>(p) / 4 % 16); }

template <class S>
void transpose_block(const Blocks& blocks, const Place& at, float* stage, const float* next) {
  const TransposeArgs& p = blocks.p;
  const Cut& cut = blocks.cut;
  const int64_t above = blocks.above(at), pitch = cut.rows + blocks.overlap + 16;
  const int64_t rows = p.m - at.i < cut.rows ? p.m - at.i : cut.rows,
                columns = p.n - at.j < cut.columns ? p.n - at.j : cut.columns;
  transpose_to_stage<S>(blocks.source(at), p.a.rs, above + rows, columns, stage, pitch, next);
  float* const b = p.b.data + at.batch * p.b.bs + at.j * p.b.rs + at.i;
  if (!blocks.overlap) {
    for (int64_t j = 0; j < columns; ++j) S::copy(b + j * p.b.rs, stage + j * pitch, rows, cut.far);
    return;
  }
  const bool last = at.i + rows == p.m;
  for (int64_t j = 0; j < columns; ++j) {
    float* const run = b + j * p.b.rs;
    const int64_t begin = above ? -in_line(run) : 0, end = last ? rows : rows - in_line(run + rows);
    S::copy(run + begin, stage + j * pitch + above + begin, end - begin, true);
  }
}

// Blocks that follow each other make a task. At its end a thread waits for what it streamed.
inline int64_t blocks_of_task(const Blocks& blocks, int threads) {
  if (threads == 1) return blocks.count;
  const int64_t enough = ceil_div(65536, blocks.cut.rows * blocks.cut.columns);
  const int64_t even = ceil_div(blocks.count, 8 * int64_t(threads));
  return even > enough ? even : enough;
}

template <class S>
void turn(const TransposeArgs& p, const Context& context) {
  const Blocks blocks(p, choose_cut<S>(p, context.threads), S::streams);
  const int64_t together = blocks_of_task(blocks, context.threads);
  auto task = [&](int64_t index, int slot) {
    float* const stage = static_cast<float*>(context.workspace) + slot * int64_t(stage_bytes / sizeof(float));
    const int64_t first = index * together, behind = first + together < blocks.count ? first + together : blocks.count;
    Place at = blocks.at(first);
    for (int64_t block = first; block < behind; ++block) {
      const Place next = block + 1 < blocks.count ? blocks.at(block + 1) : at;
      const float* const ahead = blocks.cut.fetch ? blocks.ahead(at, next) : nullptr;
      if (blocks.cut.far && !far_cache()) transpose_block<typename S::Far>(blocks, at, stage, ahead);
      else transpose_block<S>(blocks, at, stage, ahead);
      at = next;
    }
    if (blocks.cut.far) S::fence();
  };
  parallel_for(ceil_div(blocks.count, together), context.threads, task);
}

// Row j of the result is a contiguous column of A already, or the other way round: nothing has to be transposed.
template <class S>
void copy_rows(const TransposeArgs& p, const Context& context) {
  const bool columns = p.b.cs == 1;  // b(j, :) = a(:, j); otherwise b(:, i) = a(i, :)
  const int64_t lines = columns ? p.n : p.m, length = columns ? p.m : p.n;
  const int64_t from = columns ? p.a.cs : p.a.rs, to = columns ? p.b.rs : p.b.cs;
  const bool stream = beyond_caches(p) && length >= 64;
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
inline void transpose_strided(const TransposeArgs& p, const Context& context) {
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
// The side of a tile; two of them are staged. Rows a multiple of 4 KiB apart all fall into the same few sets of L1, and
// the fewer tiles, the fewer times they leave it (1024x1024: 140 us with a side of 128, 205 with 64; 1000x1000 127 and
// 103).
inline int64_t tile_side(const TransposeArgs& p) { return p.b.rs % 1024 == 0 ? 128 : 64; }

// The tile at (i, j) and its mirror image change places.
template <class S, int64_t side>
void exchange_tiles(float* b, int64_t rs, int64_t size, int64_t i, int64_t j, float* stage) {
  constexpr int64_t pitch = side + 16;
  float *const one = b + i * rs + j, *const other = b + j * rs + i, *const second = stage + side * pitch;
  const int64_t rows = size - i < side ? size - i : side, columns = size - j < side ? size - j : side;
  transpose_to_stage<S>(one, rs, rows, columns, stage, pitch, nullptr);
  if (i != j) transpose_to_stage<S>(other, rs, columns, rows, second, pitch, nullptr);
  for (int64_t c = 0; c < columns; ++c) S::copy(other + c * rs, stage + c * pitch, rows, false);
  if (i == j) return;
  for (int64_t r = 0; r < rows; ++r) S::copy(one + r * rs, second + r * pitch, columns, false);
}
inline void exchange_elements(const Matrix& b, int64_t size, int64_t side, int64_t i0, int64_t j0) {
  for (int64_t i = i0; i < size && i < i0 + side; ++i)
    for (int64_t j = j0; j < i && j < j0 + side; ++j) {
      float &one = b.data[i * b.rs + j * b.cs], &other = b.data[j * b.rs + i * b.cs];
      const float kept = one;
      one = other, other = kept;
    }
}

template <class S>
void exchange(const TransposeArgs& p, const Context& context) {
  const int64_t side = tile_side(p), tiles = ceil_div(p.m, side), pairs = tiles * (tiles + 1) / 2;
  auto task = [&](int64_t index, int slot) {
    const Matrix b{p.b.data + index / pairs * p.b.bs, p.b.rs, p.b.cs};
    int64_t column = index % pairs, row = 0;  // of the lower triangle of tiles
    while (column > row) column -= ++row;
    if (b.cs != 1) return exchange_elements(b, p.m, side, row * side, column * side);
    float* const stage = static_cast<float*>(context.workspace) + slot * int64_t(stage_bytes / sizeof(float));
    if (side == 64) exchange_tiles<S, 64>(b.data, b.rs, p.m, row * side, column * side, stage);
    else exchange_tiles<S, 128>(b.data, b.rs, p.m, row * side, column * side, stage);
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
  transpose_strided(p, context);
}

}  // namespace
}  // namespace fl
