// SGEMM for up to four rows of A, or, as its transpose, up to four columns of B: the large operand is read once, where
// it lies, and nothing is packed. Bound by memory, as a matrix-vector product is, but with the order of sums of every
// other SGEMM (micro_kernel.h), so that a row of the result has the same bits computed alone or among others.
//
// Rows of B contiguous: eight rows at a time are scaled and added to a stretch of the sums, which stays in L1.
// Columns of B contiguous: a sum of neighbouring elements would be fast, but in another order. So blocks of a vector
// of columns are transposed in registers and used at once; several are under way, since each of their sums is one chain
// of additions.
// B may be of any type T that vectors are loaded from.
#pragma once

#include "micro_kernel.h"
#include "packed_sgemm.h"

namespace fl {
namespace {

constexpr int64_t rows_together = 4;

// What all columns of a few rows share.
template <class T>
struct FewRows {
  const float* a;
  int64_t a_rs, a_cs;
  const T* b;
  int64_t b_rs, b_cs;
  float* c;
  int64_t c_rs, c_cs;
  int64_t k;
  float alpha, beta;
};

// C = alpha * sum + beta * C for the first chain of additions, C += alpha * sum for the others.
template <int M, class T>
void put_sums(const FewRows<T>& p, int64_t j, const float* sums, int64_t pitch, int64_t columns, bool first) {
  for (int i = 0; i < M; ++i) {
    float* const c = p.c + i * p.c_rs + j * p.c_cs;
    const float* const sum = sums + i * pitch;
    auto each = [&](auto value) {
      if (p.c_cs == 1)
        for (int64_t q = 0; q < columns; ++q) c[q] = value(c[q], sum[q]);
      else
        for (int64_t q = 0; q < columns; ++q) c[q * p.c_cs] = value(c[q * p.c_cs], sum[q]);
    };
    if (!first) each([&](float old, float s) { return __builtin_fmaf(p.alpha, s, old); });
    else if (p.beta == 0.0f) each([&](float, float s) { return p.alpha * s; });
    else each([&](float old, float s) { return __builtin_fmaf(p.alpha, s, p.beta * old); });
  }
}

// sums[i][q] += the products of G rows of B, the first at b.
template <class S, int M, int G, class T>
inline __attribute__((always_inline)) void add_rows(const FewRows<T>& p, int64_t k, const T* b, int64_t columns,
                                                    float* sums, int64_t pitch) {
  using V = typename S::V;
  V factor[M][G];
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) factor[i][g] = S::set1(p.a[i * p.a_rs + (k + g) * p.a_cs]);
  for (int64_t q = 0; q < columns; q += S::W) {
    const bool part = columns - q < S::W;
    const auto mask = S::mask(columns - q);
    V sum[M];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) sum[i] = S::load(sums + i * pitch + q);
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) {
      const T* const row = b + g * p.b_rs + q;
      const V bv = part ? S::load_part(row, mask) : S::load(row);
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) S::fma(sum[i], factor[i][g], bv);
    }
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) S::store(sums + i * pitch + q, sum[i]);
  }
}

template <class S, int M, class T>
void rows_along(const FewRows<T>& p, int64_t j0, int64_t count) {
  constexpr int G = M == 1 ? 8 : S::registers == 32 ? (M == 2 ? 8 : 4) : (M == 2 ? 4 : 2);  // factors fit the registers
  constexpr int64_t pitch = 2048 / M / 16 * 16;
  float sums[M * pitch];
  for (int64_t j = j0; j < j0 + count; j += pitch) {
    const int64_t columns = smaller(pitch, j0 + count - j);
    for (int64_t chain = 0; chain < p.k; chain += chain_length) {
      const int64_t end = smaller(p.k, chain + chain_length);
      for (int i = 0; i < M; ++i)
        for (int64_t q = 0; q < columns; q += S::W) S::store(sums + i * pitch + q, S::zero());
      int64_t k = chain;
      for (; k + G <= end; k += G) add_rows<S, M, G>(p, k, p.b + k * p.b_rs + j, columns, sums, pitch);
      for (; k < end; ++k) add_rows<S, M, 1>(p, k, p.b + k * p.b_rs + j, columns, sums, pitch);
      put_sums<M>(p, j, sums, pitch, columns, chain == 0);
    }
  }
}

// G vectors of columns of B, each contiguous; of the first `known` C is there already.
template <class S, int M, int G, class T>
void columns_transposed(const FewRows<T>& p, int64_t j, int64_t known = 0) {
  using V = typename S::V;
  constexpr int W = S::W;
  // Columns a power of two apart share one L1 set, which holds eight lines: those of eight columns are then used up
  // before the next eight are touched (1 x 1024 x 1024: 144 us, 459 without). Otherwise all columns advance together,
  // and their chains of additions overlap (1 x 1000 x 1000: 76 us, 93 by lines). Prefetches lost in both.
  const bool lines = p.b_cs % (2048 / int64_t(sizeof(T))) == 0;
  for (int64_t chain = 0; chain < p.k; chain += chain_length) {
    const int64_t end = smaller(p.k, chain + chain_length);
    V acc[G][M];
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) acc[g][i] = S::zero();
    const T* b = p.b + j * p.b_cs + chain;
    const float* a = p.a + chain * p.a_cs;
    auto four = [&](int g, int u, const V* factor) __attribute__((always_inline)) {
      V row[4];
      S::turn_four(b + W * g * p.b_cs + u, p.b_cs, row);
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q)
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
          if (M == 1) S::fma(acc[g][i], factor[q], row[q]);
          else S::fma_scalar(acc[g][i], a + i * p.a_rs + (u + q) * p.a_cs, row[q]);
        }
    };
    auto factors = [&](int u, V* factor) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) factor[q] = S::set1(a[(u + q) * p.a_cs]);
    };
    int64_t k = chain;
    V factor[4];
    if (lines)
      for (; k + 16 <= end; k += 16, b += 16, a += 16 * p.a_cs)
#pragma GCC unroll 8
        for (int g = 0; g < G; ++g)
#pragma GCC unroll 4
          for (int u = 0; u < 16; u += 4) factors(u, factor), four(g, u, factor);
    for (; k + 4 <= end; k += 4, b += 4, a += 4 * p.a_cs) {
      factors(0, factor);
#pragma GCC unroll 8
      for (int g = 0; g < G; ++g) four(g, 0, factor);
    }
    for (; k < end; ++k, ++b, a += p.a_cs)
#pragma GCC unroll 8
      for (int g = 0; g < G; ++g) {
        alignas(32) float column[W];
        for (int q = 0; q < W; ++q) column[q] = to_float(b[(W * g + q) * p.b_cs]);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) S::fma_scalar(acc[g][i], a + i * p.a_rs, S::load(column));
      }
    alignas(32) float sums[M * W * G];
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) S::store(sums + (i * G + g) * W, acc[g][i]);
    put_sums<M>(p, j + known, sums + known, W * G, W * G - known, chain == 0);
  }
}

// Any strides, and fewer columns than a vector has.
template <int M, class T>
void columns_strided(const FewRows<T>& p, int64_t j0, int64_t count) {
  for (int64_t j = j0; j < j0 + count; ++j)
    for (int64_t chain = 0; chain < p.k; chain += chain_length) {
      const int64_t end = smaller(p.k, chain + chain_length);
      float sums[M] = {};
      for (int64_t k = chain; k < end; ++k)
        for (int i = 0; i < M; ++i)
          sums[i] = __builtin_fmaf(p.a[i * p.a_rs + k * p.a_cs], to_float(p.b[k * p.b_rs + j * p.b_cs]), sums[i]);
      put_sums<M>(p, j, sums, 1, 1, chain == 0);
    }
}

template <class S, int M, class T>
void few_rows(const FewRows<T>& p, int64_t j, int64_t count) {
  if (p.b_cs == 1) return rows_along<S, M>(p, j, count);
  const int64_t end = j + count;
  if (p.b_rs == 1) {
    using N = typename S::Narrow;
    constexpr int G = (M == 1 ? 32 : 16) / N::W;
    for (; j + N::W * G <= end; j += N::W * G) columns_transposed<N, M, G>(p, j);
    for (; j + N::W <= end; j += N::W) columns_transposed<N, M, 1>(p, j);
    if (j < end && end >= N::W) return columns_transposed<N, M, 1>(p, end - N::W, N::W - (end - j));
  }
  columns_strided<M>(p, j, end - j);
}

template <class S>
void rows_sgemm(const SgemmArgs& given, const Context& context) {
  if (given.k == 0) return scale(given);
  const SgemmArgs p = given.n < given.m ? transposed(given) : given;
  const int64_t parts = rows_tasks(p, context.threads), groups = ceil_div(p.m, rows_together);
  const int64_t chunk = ceil_div(ceil_div(p.n, parts), 64) * 64;
  auto task = [&](int64_t index, int) {
    const int64_t batch = index / parts / groups, i = index / parts % groups * rows_together;
    const int64_t j = index % parts * chunk, count = smaller(chunk, p.n - j);
    if (count <= 0) return;
    with_elements(p.stored[1], p.b.data + batch * p.b.bs, [&](const auto* b) {
      const FewRows few{p.a.data + batch * p.a.bs + i * p.a.rs, p.a.rs, p.a.cs, b,   p.b.rs,  p.b.cs,
                        p.c.data + batch * p.c.bs + i * p.c.rs, p.c.rs, p.c.cs, p.k, p.alpha, p.beta};
      switch (smaller(rows_together, p.m - i)) {
        case 1: return few_rows<S, 1>(few, j, count);
        case 2: return few_rows<S, 2>(few, j, count);
        case 3: return few_rows<S, 3>(few, j, count);
        default: return few_rows<S, 4>(few, j, count);
      }
    });
  };
  parallel_for(p.batch * groups * parts, context.threads, task);
}

}  // namespace
}  // namespace fl
