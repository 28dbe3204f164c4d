// Matrix times vector where the columns of A, of any type T that vectors are loaded from, are contiguous: columns are
// scaled and added, eight at a time.
#pragma once

#include <stdint.h>

namespace fl {
namespace {

constexpr int columns_together = 8;

// The sum of eight scaled columns at one vector of rows; `here` of the columns exist.
template <class S, class T, class Load>
inline __attribute__((always_inline)) typename S::V eight_columns(const T* a, int64_t cs, int64_t here,
                                                                  const typename S::V* factor, Load load) {
  typename S::V total = S::mul(load(a), factor[0]);
  if (here == columns_together) {
#pragma GCC unroll 8
    for (int q = 1; q < columns_together; ++q) S::fma(total, load(a + q * cs), factor[q]);
  } else {
    for (int q = 1; q < here; ++q) S::fma(total, load(a + q * cs), factor[q]);
  }
  return total;
}

// sum[i] = row i of A times x, for contiguous columns of at most VECTORS vectors, whose sums stay in registers. Memory
// is read in ascending order, as gemv_rows.h does it.
template <class S, int VECTORS, class T>
void add_short_columns(const T* a, int64_t cs, int64_t rows, int64_t n, const float* x, float* sum) {
  using V = typename S::V;
  constexpr int last = VECTORS - 1;
  const auto mask = S::mask(rows - last * S::W);
  const bool full = rows == VECTORS * S::W;
  V acc[VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < VECTORS; ++v) acc[v] = S::zero();
  for (int64_t j = 0; j < n; j += columns_together) {
    const int64_t end = n - j < columns_together ? n : j + columns_together;
    V total[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) total[v] = S::zero();
#pragma GCC unroll 1
    for (int64_t q = j; q < end; ++q) {
      const T* const p = a + q * cs;
      const V factor = S::set1(x[q]);
#pragma GCC unroll 8
      for (int v = 0; v < last; ++v) S::fma(total[v], S::load(p + v * S::W), factor);
      S::fma(total[last], full ? S::load(p + last * S::W) : S::load_part(p + last * S::W, mask), factor);
    }
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) acc[v] = S::add(acc[v], total[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < VECTORS; ++v) S::store_part(sum + v * S::W, acc[v], rows - v * S::W);
}

// Columns so long at most are summed in registers.
template <class S>
constexpr int short_vectors = S::registers / 4;
template <class S, int VECTORS = 1, class T>
void add_short(const T* a, int64_t cs, int64_t rows, int64_t n, const float* x, float* sum) {
  if constexpr (VECTORS < short_vectors<S>)
    if (rows > VECTORS * S::W) return add_short<S, VECTORS + 1>(a, cs, rows, n, x, sum);
  add_short_columns<S, VECTORS>(a, cs, rows, n, x, sum);
}

// The same for columns of any length: the sums stay in L1. `ahead`: prefetch the next columns, for an A beyond the
// caches; within them it costs a quarter of the time, more if the columns are about a power of two apart.
template <class S, bool ahead, class T>
void add_columns(const T* a, int64_t cs, int64_t rows, int64_t n, const float* x, float* sum) {
  using V = typename S::V;
  constexpr int64_t line = 64 / int64_t(sizeof(T));
  if (rows <= short_vectors<S> * S::W) return add_short<S>(a, cs, rows, n, x, sum);
  for (int64_t i = 0; i < rows; ++i) sum[i] = 0.0f;
  for (int64_t j = 0; j < n; j += columns_together) {
    const int64_t here = n - j < columns_together ? n - j : columns_together;
    V factor[columns_together];
#pragma GCC unroll 8
    for (int q = 0; q < columns_together; ++q) factor[q] = q < here ? S::set1(x[j + q]) : S::zero();
    const T* const p = a + j * cs;
    int64_t i = 0;
    for (; i + S::W <= rows; i += S::W) {
#pragma GCC unroll 8
      for (int q = 0; q < columns_together; ++q)
        if (ahead && (S::W >= line || i % line == 0)) __builtin_prefetch(p + i + (q + columns_together) * cs, 0, 2);
      S::store(sum + i, S::add(S::load(sum + i),
                               eight_columns<S>(p + i, cs, here, factor, [](const T* f) { return S::load(f); })));
    }
    if (i < rows) {
      const auto mask = S::mask(rows - i);
      const V total = eight_columns<S>(p + i, cs, here, factor, [mask](const T* f) { return S::load_part(f, mask); });
      S::store_part(sum + i, S::add(S::load_part(sum + i, mask), total), rows - i);
    }
  }
}

}  // namespace
}  // namespace fl
