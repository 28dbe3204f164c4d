// The innermost product: an M x (NV vectors) tile of C held in registers while k runs.
//
// The order of the sums, the same in every SGEMM kernel of the CPU: a chain of fused multiply-adds over ascending k,
// begun anew every `chain_length` steps and then added to C. The bits of an element therefore depend on its row of A,
// its column of B, alpha and beta alone, never on the tile, the path, the threads or the slice it was computed in.
// What the short chain buys: at K = 1024 the largest error over u|A||B| is 1.6 with it, 3.7 with one chain and 2.5 in
// OpenBLAS (normal data), for about half a percent of time: the tile of C is in L1 when it is updated, and the blocks
// of K in cache can be longer. 128 would give 0.9 and costs 1 to 3 % more (who would need it: docs/notes/cpu.md).
#pragma once

#include <stdint.h>

#include <utility>

#include "plan/reproducible_plan.h"

namespace fl {
namespace {

constexpr int64_t chain_length = REPRODUCIBLE_BLOCK;

struct Tile {
  int64_t k = 0;
  const float* a = nullptr;
  int64_t a_rs = 0, a_cs = 0;  // of direct_tile.h; a packed A has M floats for each k, no gaps
  const float* b = nullptr;
  int64_t b_rs = 0;
  float* c = nullptr;
  int64_t c_rs = 0;
  int64_t width = 0;  // columns that exist, at most NV vectors
  float alpha = 1, beta = 0;
  bool first = true;                 // C = alpha AB + beta C; otherwise C += alpha AB
  const float* copy_from = nullptr;  // rows of NV vectors copied between the multiplications, one for every four k
  int64_t copy_rs = 0;
  float* copy_to = nullptr;
};
using TileFunction = void (*)(const Tile&);

// The update at the edge of C, from sums spilled to the stack: one column vector of one row, n of whose lanes exist.
template <class S>
void update_part(float* c, const float* sums, const Tile& t, bool first, int64_t n) {
  const typename S::V alpha = S::set1(t.alpha);
  typename S::V sum = S::mul(alpha, S::load(sums));
  if (!first || t.beta != 0.0f) {
    const typename S::V old = S::load_part(c, S::mask(n));
    sum = first ? S::mul(S::set1(t.beta), old) : old;
    S::fma(sum, alpha, S::load(sums));
  }
  S::store_part(c, sum, n);
}

// All lines of a row of n floats, which may begin anywhere in a line.
template <int n>
void prefetch_row(const float* p) {
#pragma GCC unroll 4
  for (int i = 0; i < n; i += 16) __builtin_prefetch(p + i);
  __builtin_prefetch(p + n - 1);
}

// acc[i][v] += a[i] * bv[v]: A is read a vector at a time, the last one up to three numbers beyond its rows.
template <class S, int M, int NV, int... I>
inline __attribute__((always_inline)) void add_products(typename S::V (&acc)[M][NV], const float* a,
                                                        const typename S::V* bv, std::integer_sequence<int, I...>) {
  constexpr int vectors = (M + S::W - 1) / S::W;
  typename S::V rows[vectors];
#pragma GCC unroll 4
  for (int q = 0; q < vectors; ++q) rows[q] = S::load(a + q * S::W);
  auto row = [&](auto i) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) S::template fma_lane<i % S::W>(acc[i][v], rows[i / S::W], bv[v]);
  };
  (row(std::integral_constant<int, I>{}), ...);
}

// A is packed. B is packed, NV vectors for each k, or, with Pitch, read b_rs apart. Copy: copies copy_from's rows too.
template <class S, int M, int NV, bool Pitch, bool Copy>
__attribute__((noinline)) void multiply_tile(const Tile& t) {
  using V = typename S::V;
  V acc[M][NV];
  const int64_t b_rs = Pitch ? t.b_rs : NV * S::W;
  const float *a = t.a, *b = t.b;
  const float* copy_from = t.copy_from;
  float* copy_to = t.copy_to;
  for (int i = 0; i < M; ++i) prefetch_row<NV * S::W>(t.c + i * t.c_rs);

  auto step = [&](int u) __attribute__((always_inline)) {
    V bv[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) bv[v] = S::load(b + v * S::W);
    b += b_rs;
    if constexpr (S::by_lane) return add_products<S>(acc, a + u * M, bv, std::make_integer_sequence<int, M>{});
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const V x = S::set1(a[u * M + i]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) S::fma(acc[i][v], x, bv[v]);
    }
  };

  bool first = t.first;
  for (int64_t left = t.k; left > 0; left -= chain_length) {
    const int64_t chain = left < chain_length ? left : chain_length;
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[i][v] = S::zero();
    for (int64_t q = chain / 4; q > 0; --q) {
      step(0);
      step(1);
      if (Copy) {
        prefetch_row<NV * S::W>(copy_from + 8 * t.copy_rs);
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) S::store(copy_to + v * S::W, S::load(copy_from + v * S::W));
        copy_from += t.copy_rs;
        copy_to += NV * S::W;
      }
      if (!Copy) {  // some panels of B come from L3, and one follows the other
#pragma GCC unroll 8
        for (int i = 0; i < 4 * NV * S::W; i += 16) __builtin_prefetch(b + 2048 + i);
      }
      step(2);
      step(3);
      a += 4 * M;
    }
    for (int64_t q = chain % 4; q > 0; --q) {
      step(0);
      a += M;
    }
    auto each = [&](auto put) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) put(t.c + i * t.c_rs + v * S::W, acc[i][v]);
    };
    const V alpha = S::set1(t.alpha), beta = S::set1(t.beta);
    if (t.width < NV * S::W) {
      float sums[M * NV * S::W];
      float* to = sums;
      each([&](float*, V sum) __attribute__((always_inline)) {
        S::store(to, sum);
        to += S::W;
      });
      const float* from = sums;
      for (int i = 0; i < M; ++i)
        for (int v = 0; v < NV; ++v, from += S::W)
          if (v * S::W < t.width) update_part<S>(t.c + i * t.c_rs + v * S::W, from, t, first, t.width - v * S::W);
    } else if (!first && t.alpha == 1.0f) {
      each([&](float* c, V sum) __attribute__((always_inline)) { S::store(c, S::add(S::load(c), sum)); });
    } else if (!first) {
      each([&](float* c, V sum) __attribute__((always_inline)) {
        V old = S::load(c);
        S::fma(old, alpha, sum);
        S::store(c, old);
      });
    } else if (t.beta == 0.0f) {
      each([&](float* c, V sum) __attribute__((always_inline)) { S::store(c, S::mul(alpha, sum)); });
    } else {
      each([&](float* c, V sum) __attribute__((always_inline)) {
        V old = S::mul(beta, S::load(c));
        S::fma(old, alpha, sum);
        S::store(c, old);
      });
    }
    first = false;
  }
}

// multiply_tile for 1 .. MR rows: function[rows - 1].
template <class S, int NV, bool Pitch, bool Copy, class Rows>
struct TileTable;
template <class S, int NV, bool Pitch, bool Copy, int... I>
struct TileTable<S, NV, Pitch, Copy, std::integer_sequence<int, I...>> {
  static constexpr TileFunction function[] = {multiply_tile<S, I + 1, NV, Pitch, Copy>...};
};
template <class S, int NV, bool Pitch = false, bool Copy = false>
TileFunction tile_function(int64_t rows) {
  return TileTable<S, NV, Pitch, Copy, std::make_integer_sequence<int, S::MR>>::function[rows - 1];
}

}  // namespace
}  // namespace fl
