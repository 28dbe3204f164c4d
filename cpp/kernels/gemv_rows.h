// Matrix times vector where the rows of A, of any type T that vectors are loaded from, are contiguous: dot products,
// whose lanes are summed for eight rows at once.
//
// How a row is summed depends on its length alone, so that it has the same bits in any slice of A. On a Zen 4, from L3:
// one row after the other in a loop is what the hardware reads ahead of best: 16384 rows of 128 take 89 us, eight side
// by side 105 (prefetched or not), the same with the rows unrolled 101; reading alone takes 84. But a row costs some
// cycles of its own, so shorter ones go eight together; and so do rows beyond `section`, whose pieces are not
// neighbours (8192x8192 from memory: 9.8 ms, 12.6 in order).
#pragma once

#include <stdint.h>

namespace fl {
namespace {

constexpr int rows_at_once = 8;

// sum[q] = row q of A times x, for `here` <= 8 rows of LENGTH elements; x in registers.
template <class S, int LENGTH, class T>
inline __attribute__((always_inline)) void dot_short(const T* a, int64_t rs, int64_t here, const typename S::V* x,
                                                     float* sum) {
  typename S::V acc[rows_at_once];
#pragma GCC unroll 8
  for (int q = 0; q < rows_at_once; ++q) {
    acc[q] = S::mul(S::load(a), x[0]);
#pragma GCC unroll 4
    for (int v = 1; v < LENGTH / S::W; ++v) acc[q] = S::madd(S::load(a + v * S::W), x[v], acc[q]);
    if (q + 1 < here) a += rs;  // those beyond the last are the last one again
  }
  S::store_sums(acc, sum, here);
}

// The same for rows of any length, which advance together.
template <class S, class T>
inline __attribute__((always_inline)) void dot_together(const T* a, int64_t rs, int64_t here, int64_t n, const float* x,
                                                        float* sum) {
  const T *const third = a + 3 * rs, *const sixth = a + 6 * rs;  // the other rows by scaled index
  auto row = [&](int q) __attribute__((always_inline)) {
    if (here < rows_at_once) return a + (q < here ? q : here - 1) * rs;
    return (q < 3 ? a : q < 6 ? third : sixth) + q % 3 * rs;
  };
  typename S::V acc[rows_at_once];
#pragma GCC unroll 8
  for (int q = 0; q < rows_at_once; ++q) acc[q] = S::zero();
  const int64_t whole = n / S::W * S::W;
  for (int64_t j = 0; j < whole; j += S::W) {
    const typename S::V v = S::load(x + j);
#pragma GCC unroll 8
    for (int q = 0; q < rows_at_once; ++q) acc[q] = S::madd(S::load(row(q) + j), v, acc[q]);
  }
  if (whole < n) {
    const auto tail = S::mask(n - whole);
    const typename S::V v = S::load_part(x + whole, tail);
#pragma GCC unroll 8
    for (int q = 0; q < rows_at_once; ++q) S::fma(acc[q], S::load_part(row(q) + whole, tail), v);
  }
  S::store_sums(acc, sum, here);
}

// One row: two chains of FMAs, since the latency of one is longer than memory takes.
template <class S, class T>
inline __attribute__((always_inline)) typename S::V dot_lanes(const T* a, int64_t n, const float* x) {
  typename S::V even = S::zero(), odd = S::zero();
  int64_t j = 0;
  for (; j + 2 * S::W <= n; j += 2 * S::W) {
    even = S::madd(S::load(a + j), S::load(x + j), even);
    odd = S::madd(S::load(a + j + S::W), S::load(x + j + S::W), odd);
  }
  if (j + S::W <= n) {
    even = S::madd(S::load(a + j), S::load(x + j), even);
    j += S::W;
  }
  if (j < n) {
    const auto tail = S::mask(n - j);
    S::fma(odd, S::load_part(a + j, tail), S::load_part(x + j, tail));
  }
  return S::add(even, odd);
}

template <class S, class T>
__attribute__((noinline)) void dot_in_order(const T* a, int64_t rs, int64_t rows, int64_t n, const float* x,
                                            float* sum) {
  typename S::V acc[rows_at_once];
  for (auto& v : acc) v = S::zero();
  for (int64_t here; rows > 0; rows -= here, sum += here) {
    here = rows < rows_at_once ? rows : rows_at_once;
#pragma GCC unroll 1
    for (int64_t q = 0; q < here; ++q, a += rs) acc[q] = dot_lanes<S>(a, n, x);
    S::store_sums(acc, sum, here);
  }
}

// Calls f(first row, how many, where their sums go) for eight rows at a time.
template <class T, class F>
inline __attribute__((always_inline)) void for_eight_rows(const T* a, int64_t rs, int64_t rows, float* sum, F f) {
  for (; rows >= rows_at_once; rows -= rows_at_once, a += rows_at_once * rs, sum += rows_at_once)
    f(a, rows_at_once, sum);
  if (rows > 0) f(a, rows, sum);
}

template <class S, int LENGTH, class T>
__attribute__((noinline)) void dot_short_rows(const T* a, int64_t rs, int64_t rows, const float* x, float* sum) {
  typename S::V v[LENGTH / S::W];
#pragma GCC unroll 4
  for (int j = 0; j < LENGTH / S::W; ++j) v[j] = S::load(x + j * S::W);
  for_eight_rows(a, rs, rows, sum, [&](const T* first, int64_t here, float* to) __attribute__((always_inline)) {
    dot_short<S, LENGTH>(first, rs, here, v, to);
  });
}

// sum[i] = row i of A times x, for n <= section elements of each row; `whole`: they are all of it.
template <class S, class T>
void dot_rows(const T* a, int64_t rs, int64_t rows, int64_t n, bool whole, const float* x, float* sum) {
  // Half vectors, if there are any, spare the reduction a step: 16384 rows of 16 take 12.5 us with them, 13.8 without.
  if (n == 16) return dot_short_rows<typename S::Narrow, 16>(a, rs, rows, x, sum);
  if (n == 32 && S::W >= 8) return dot_short_rows<S, 32>(a, rs, rows, x, sum);
  if (n == 64 && S::W >= 16) return dot_short_rows<S, 64>(a, rs, rows, x, sum);
  if (whole && n >= 128) return dot_in_order<S>(a, rs, rows, n, x, sum);
  for_eight_rows(a, rs, rows, sum, [&](const T* first, int64_t here, float* to) __attribute__((always_inline)) {
    dot_together<S>(first, rs, here, n, x, to);
  });
}

}  // namespace
}  // namespace fl
