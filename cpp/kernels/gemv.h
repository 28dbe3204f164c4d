// SGEMV for any strides. Memory-bound: what counts is that A is read once, in whole lines, with enough loads in flight.
//
// Rows contiguous: gemv_rows.h. Columns contiguous (the transposed product): gemv_columns.h.
// In both, the terms are summed in sections of `section` columns whose sums are added in ascending order. The order
// depends on n alone, so the bits do not change with the number of threads or the rows a call was given. A may be of
// any type T that vectors are loaded from (simd.h): the bits are those of the same matrix in float32.
#pragma once

#include <type_traits>

#include "core/context.h"
#include "core/problem.h"
#include "gemv_columns.h"
#include "gemv_rows.h"
#include "plan/gemv_plan.h"
#include "runtime/thread_pool.h"
#include "stored.h"

namespace fl {
namespace {

constexpr int64_t row_block = 2048;  // rows whose sums are kept on the stack

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

// Whether the matrix that a conversion makes of A has contiguous rows: its order is that of the smaller stride.
inline bool converts_to_rows(const SgemvArgs& p) {
  const auto distance = [](int64_t stride) { return stride < 0 ? -stride : stride; };
  return p.m == 1 || p.n == 1 || p.a.rs == 0 || (p.a.cs != 0 && distance(p.a.cs) <= distance(p.a.rs));
}

// Any strides of another type: some lines at a time as float32 in L1, in the order of the matrix of a conversion.
template <class S>
void sum_converted(const SgemvArgs& p, const float* a, const float* x, int64_t rows, int64_t n, float* sum) {
  constexpr int64_t pitch = section + 16;
  alignas(64) float tile[rows_at_once * pitch];
  if (converts_to_rows(p)) {
    for (int64_t i = 0; i < rows; i += rows_at_once) {
      const int64_t here = rows - i < rows_at_once ? rows - i : rows_at_once;
      convert(p.stored[0], a + i * p.a.rs, p.a.rs, p.a.cs, tile, pitch, here, n);
      dot_rows<S>(tile, pitch, here, n, n == p.n, x, sum + i);
    }
    return;
  }
  float next[section];
  for (int64_t j = 0; j < n; j += columns_together)
    for (int64_t i = 0; i < rows; i += section) {
      const int64_t columns = n - j < columns_together ? n - j : columns_together;
      const int64_t here = rows - i < section ? rows - i : section;
      convert(p.stored[0], a + i * p.a.rs + j * p.a.cs, p.a.cs, p.a.rs, tile, pitch, columns, here);
      add_columns<S, false>(tile, pitch, here, columns, x + j, j == 0 ? sum + i : next);
      for (int64_t q = 0; q < here && j > 0; ++q) sum[i + q] += next[q];
    }
}

template <class S, class T>
void sum_section(const SgemvArgs& p, const T* a, const float* x, int64_t rows, int64_t n, float* sum) {
  constexpr bool converted = !std::is_same_v<T, float>;
  if (p.a.cs == 1) return dot_rows<S>(a, p.a.rs, rows, n, n == p.n, x, sum);
  if (p.a.rs == 1 && !(converted && converts_to_rows(p))) {
    const bool beyond_caches = int64_t(sizeof(T)) * p.m * p.n > (int64_t(16) << 20);
    return (beyond_caches ? add_columns<S, true, T> : add_columns<S, false, T>)(a, p.a.cs, rows, n, x, sum);
  }
  if constexpr (converted) sum_converted<S>(p, seen(p.stored[0], a), x, rows, n, sum);
  else dot_strided(a, p.a.rs, p.a.cs, rows, n, x, sum);
}

// Rows [i, i + rows) and sections [first, last) of the sum; rows <= row_block.
template <class S, class T>
void sum_sections(const SgemvArgs& p, const T* a, const float* x, int64_t i, int64_t rows, int64_t first, int64_t last,
                  float* sum) {
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

template <class S, class T>
void gemv_one(const SgemvArgs& p, const T* a, int64_t batch, const GemvPlan& plan, int threads, float* workspace) {
  const float* x = p.x.data + batch * p.x.bs;
  float* const y = p.y.data + batch * p.y.bs;
  if (p.x.inc != 1 || p.stored[1].converted()) {
    convert(p.stored[1], x, 0, p.x.inc, workspace, 0, 1, p.n);
    x = workspace;
    workspace += p.n;
  }
  const int64_t sections = ceil_div(p.n, section);
  if (sections == 0) return scale(p, y);
  if (!plan.split_sections) {
    const bool in_place = p.alpha == 1.0f && p.beta == 0.0f && p.y.inc == 1;
    auto task = [&](int64_t index, int) {
      const int64_t groups = ceil_div(p.m, rows_at_once), last = groups * (index + 1) / plan.tasks * rows_at_once;
      const int64_t end = last < p.m ? last : p.m;
      for (int64_t i = groups * index / plan.tasks * rows_at_once; i < end; i += row_block) {
        const int64_t rows = end - i < row_block ? end - i : row_block;
        float sum[row_block];
        sum_sections<S>(p, a, x, i, rows, 0, sections, in_place ? y + i : sum);
        if (!in_place) finish(p, y + i * p.y.inc, sum, rows);
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
    with_elements(p.stored[0], p.a.data + batch * p.a.bs, [&](const auto* a) {
      gemv_one<S>(p, a, batch, plan, plan.across_batch ? 1 : context.threads, workspace);
    });
  };
  if (plan.across_batch) return parallel_for(p.batch, context.threads, task);
  for (int64_t batch = 0; batch < p.batch; ++batch) task(batch, 0);
}

}  // namespace
}  // namespace fl
