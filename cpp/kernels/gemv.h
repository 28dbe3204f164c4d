// SGEMV for any strides. Memory-bound: what counts is that A is read once, in whole lines, with enough loads in flight.
//
// Rows contiguous: dot products of eight rows at a time, so that x is loaded once for eight. Columns contiguous (the
// transposed product): sums of eight scaled columns at a time are added to a stretch of y that stays in L1.
// In both, the terms are summed in sections of `section` columns whose sums are added in ascending order. The order
// depends on n alone, so the bits do not change with the number of threads or the rows a call was given.
#pragma once

#include "../gemv_plan.h"
#include "../registry.h"
#include "../thread_pool.h"

namespace fl {
namespace {

constexpr int rows_at_once = 8, columns_at_once = 8;
constexpr int64_t row_block = 2048;  // rows whose sums are kept on the stack

// sum[q] = row q of A times x, for q < here <= 8 rows. LENGTH: n if it is known, else 0.
template <class S, int LENGTH, bool Prefetch>
inline __attribute__((always_inline)) void dot_eight(const float* a, int64_t rs, int64_t here, int64_t length,
                                                     const float* x, float* sum) {
  using V = typename S::V;
  const int64_t n = LENGTH ? LENGTH : length;
  // Rows beyond the last are the last one again. Every third row has a base, the others are reached by scaled index.
  const float* row[rows_at_once];
  if (here == rows_at_once) {
#pragma GCC unroll 8
    for (int q = 0; q < rows_at_once; ++q) row[q] = q % 3 ? row[q / 3 * 3] + (q % 3) * rs : a + q * rs;
  } else {
    for (int q = 0; q < rows_at_once; ++q) row[q] = a + (q < here ? q : here - 1) * rs;
  }
  V acc[rows_at_once];
#pragma GCC unroll 8
  for (int q = 0; q < rows_at_once; ++q) acc[q] = S::zero();
  const int64_t whole = n / S::W * S::W;
  for (int64_t j = 0; j < whole; j += S::W) {
    const V v = S::load(x + j);
#pragma GCC unroll 8
    for (int q = 0; q < rows_at_once; ++q) {
      if (Prefetch && (S::W == 16 || j % 16 == 0)) __builtin_prefetch(row[q] + j + rows_at_once * rs);
      acc[q] = S::madd(S::load(row[q] + j), v, acc[q]);
    }
  }
  if (whole < n) {
    const auto tail = S::mask(n - whole);
    const V v = S::load_part(x + whole, tail);
#pragma GCC unroll 8
    for (int q = 0; q < rows_at_once; ++q) S::fma(acc[q], S::load_part(row[q] + whole, tail), v);
  }
  S::store_sums(acc, sum, here);
}

// sum[i] = row i of A times x, for rows of at most `section` contiguous elements.
template <class S>
void dot_rows(const float* a, int64_t rs, int64_t rows, int64_t n, const float* x, float* sum) {
  // Short rows follow each other closely enough for the hardware; there a prefetch costs 20 %, from 64 on it gains 20
  // %.
  auto each = [&](auto dot) __attribute__((always_inline)) {
    for (int64_t i = 0; i < rows; i += rows_at_once)
      dot(a + i * rs, rows - i < rows_at_once ? rows - i : rows_at_once, sum + i);
  };
  if (n == 16) each([&](const float* p, int64_t here, float* to) { dot_eight<S, 16, false>(p, rs, here, n, x, to); });
  else if (n == 32)
    each([&](const float* p, int64_t here, float* to) { dot_eight<S, 32, false>(p, rs, here, n, x, to); });
  else if (n < 64 || n > 256)
    each([&](const float* p, int64_t here, float* to) { dot_eight<S, 0, false>(p, rs, here, n, x, to); });
  else each([&](const float* p, int64_t here, float* to) { dot_eight<S, 0, true>(p, rs, here, n, x, to); });
}

// The sum of eight scaled columns at one vector of rows; `here` of the columns exist.
template <class S, class Load>
inline __attribute__((always_inline)) typename S::V eight_columns(const float* a, int64_t cs, int64_t here,
                                                                  const typename S::V* factor, Load load) {
  typename S::V total = S::mul(load(a), factor[0]);
  if (here == columns_at_once) {
#pragma GCC unroll 8
    for (int q = 1; q < columns_at_once; ++q) S::fma(total, load(a + q * cs), factor[q]);
  } else {
    for (int q = 1; q < here; ++q) S::fma(total, load(a + q * cs), factor[q]);
  }
  return total;
}

// sum[i] = row i of A times x, for contiguous columns of at most VECTORS vectors, whose sums stay in registers.
template <class S, int VECTORS>
void add_short_columns(const float* a, int64_t cs, int64_t rows, int64_t n, const float* x, float* sum) {
  using V = typename S::V;
  V acc[VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < VECTORS; ++v) acc[v] = S::zero();
  const auto mask = S::mask(rows - (VECTORS - 1) * S::W);
  const bool full = rows == VECTORS * S::W;
  for (int64_t j = 0; j < n; j += columns_at_once) {
    const int64_t here = n - j < columns_at_once ? n - j : columns_at_once;
    V factor[columns_at_once];
#pragma GCC unroll 8
    for (int q = 0; q < columns_at_once; ++q) factor[q] = q < here ? S::set1(x[j + q]) : S::zero();
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) {
      const float* const p = a + j * cs + v * S::W;
      const bool whole = v < VECTORS - 1 || full;
      acc[v] = S::add(acc[v], whole ? eight_columns<S>(p, cs, here, factor, [](const float* f) { return S::load(f); })
                                    : eight_columns<S>(p, cs, here, factor,
                                                       [mask](const float* f) { return S::load_part(f, mask); }));
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < VECTORS; ++v) S::store_part(sum + v * S::W, acc[v], rows - v * S::W);
}

// The same for columns of any length: the sums stay in L1. `ahead`: prefetch the next columns, for an A beyond the caches;
// within them it costs a quarter of the time, and the more the closer the distance of the columns is to a power of two.
template <class S, bool ahead>
void add_columns(const float* a, int64_t cs, int64_t rows, int64_t n, const float* x, float* sum) {
  using V = typename S::V;
  if (rows <= S::W) return add_short_columns<S, 1>(a, cs, rows, n, x, sum);
  if (rows <= 2 * S::W) return add_short_columns<S, 2>(a, cs, rows, n, x, sum);
  if (rows <= 3 * S::W) return add_short_columns<S, 3>(a, cs, rows, n, x, sum);
  if (rows <= 4 * S::W) return add_short_columns<S, 4>(a, cs, rows, n, x, sum);
  for (int64_t i = 0; i < rows; ++i) sum[i] = 0.0f;
  for (int64_t j = 0; j < n; j += columns_at_once) {
    const int64_t here = n - j < columns_at_once ? n - j : columns_at_once;
    V factor[columns_at_once];
#pragma GCC unroll 8
    for (int q = 0; q < columns_at_once; ++q) factor[q] = q < here ? S::set1(x[j + q]) : S::zero();
    const float* const p = a + j * cs;
    int64_t i = 0;
    for (; i + S::W <= rows; i += S::W) {
#pragma GCC unroll 8
      for (int q = 0; q < columns_at_once; ++q)
        if (ahead && (S::W == 16 || i % 16 == 0)) __builtin_prefetch(p + i + (q + columns_at_once) * cs, 0, 2);
      S::store(sum + i, S::add(S::load(sum + i),
                               eight_columns<S>(p + i, cs, here, factor, [](const float* f) { return S::load(f); })));
    }
    if (i < rows) {
      const auto mask = S::mask(rows - i);
      const V total =
          eight_columns<S>(p + i, cs, here, factor, [mask](const float* f) { return S::load_part(f, mask); });
      S::store_part(sum + i, S::add(S::load_part(sum + i, mask), total), rows - i);
    }
  }
}

// Any strides: the specification's loop.
inline void dot_strided(const float* a, int64_t rs, int64_t cs, int64_t rows, int64_t n, const float* x, float* sum) {
  for (int64_t i = 0; i < rows; ++i) {
    float s = 0.0f;
    for (int64_t j = 0; j < n; ++j) s += a[i * rs + j * cs] * x[j];
    sum[i] = s;
  }
}

inline void finish(const SgemvArgs& p, float* y, const float* sum, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    float& out = y[i * p.y.inc];
    out = p.beta == 0.0f ? p.alpha * sum[i] : p.alpha * sum[i] + p.beta * out;
  }
}

inline void scale(const SgemvArgs& p, float* y) {
  for (int64_t i = 0; i < p.m; ++i) y[i * p.y.inc] = p.beta == 0.0f ? 0.0f : p.beta * y[i * p.y.inc];
}

template <class S>
void sum_section(const SgemvArgs& p, const float* a, const float* x, int64_t rows, int64_t n, float* sum) {
  if (p.a.cs == 1) return dot_rows<S>(a, p.a.rs, rows, n, x, sum);
  if (p.a.rs == 1)
    return (4 * p.m * p.n > (int64_t(16) << 20) ? add_columns<S, true> : add_columns<S, false>)(a, p.a.cs, rows, n, x,
                                                                                                sum);
  dot_strided(a, p.a.rs, p.a.cs, rows, n, x, sum);
}

// Rows [i, i + rows) and sections [first, last) of the sum; rows <= row_block.
template <class S>
void sum_sections(const SgemvArgs& p, const float* a, const float* x, int64_t i, int64_t rows, int64_t first,
                  int64_t last, float* sum) {
  float next[row_block];
  if (p.a.cs == 1 && last - first > 1 &&
      rows > rows_at_once) {  // long rows: a few at a time from end to end, as memory likes it
    for (int64_t q = 0; q < rows; q += rows_at_once)
      sum_sections<S>(p, a, x, i + q, rows - q < rows_at_once ? rows - q : rows_at_once, first, last, sum + q);
    return;
  }
  for (int64_t s = first; s < last; ++s) {
    const int64_t j = s * section, n = p.n - j < section ? p.n - j : section;
    sum_section<S>(p, a + i * p.a.rs + j * p.a.cs, x + j, rows, n, s == first ? sum : next);
    if (s > first)
      for (int64_t q = 0; q < rows; ++q) sum[q] += next[q];
  }
}

template <class S>
void gemv_one(const SgemvArgs& p, int64_t batch, const GemvPlan& plan, int threads, float* workspace) {
  const float* const a = p.a.data + batch * p.a.bs;
  const float* x = p.x.data + batch * p.x.bs;
  float* const y = p.y.data + batch * p.y.bs;
  if (p.x.inc != 1) {
    for (int64_t j = 0; j < p.n; ++j) workspace[j] = x[j * p.x.inc];
    x = workspace;
    workspace += p.n;
  }
  const int64_t sections = ceil_div(p.n, section);
  if (sections == 0) return scale(p, y);
  if (!plan.split_sections) {
    auto task = [&](int64_t index, int) {
      const int64_t groups = ceil_div(p.m, rows_at_once), last = groups * (index + 1) / plan.tasks * rows_at_once;
      const int64_t end = last < p.m ? last : p.m;
      for (int64_t i = groups * index / plan.tasks * rows_at_once; i < end; i += row_block) {
        const int64_t rows = end - i < row_block ? end - i : row_block;
        float sum[row_block];
        sum_sections<S>(p, a, x, i, rows, 0, sections, sum);
        finish(p, y + i * p.y.inc, sum, rows);
      }
    };
    return parallel_for(plan.tasks, threads, task);
  }
  // Few rows and many columns: each task sums some sections, and their sums are added in order afterwards.
  auto task = [&](int64_t s, int) {
    for (int64_t i = 0; i < p.m; i += row_block)
      sum_sections<S>(p, a, x, i, p.m - i < row_block ? p.m - i : row_block, s, s + 1, workspace + s * p.m + i);
  };
  parallel_for(sections, threads, task);
  for (int64_t s = 1; s < sections; ++s)
    for (int64_t i = 0; i < p.m; ++i) workspace[i] += workspace[s * p.m + i];
  finish(p, y, workspace, p.m);
}

template <class S>
void gemv(const SgemvArgs& p, const Context& context) {
  const GemvPlan plan = gemv_plan(p, context.threads);
  auto task = [&](int64_t batch, int slot) {
    float* const workspace = static_cast<float*>(context.workspace) + slot * int64_t(plan.workspace_floats);
    gemv_one<S>(p, batch, plan, plan.across_batch ? 1 : context.threads, workspace);
  };
  if (plan.across_batch) return parallel_for(p.batch, context.threads, task);
  for (int64_t batch = 0; batch < p.batch; ++batch) task(batch, 0);
}

// A product of matrices as one product with a vector for each column of B.
template <class S>
void gemv_columns(const SgemmArgs& p, const Context& context) {
  for (int64_t j = 0; j < p.n; ++j) gemv<S>(as_gemv(p, j), context);
}

}  // namespace
}  // namespace fl
