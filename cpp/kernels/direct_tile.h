// The innermost product with both operands read in place: a tile of C, M rows by NV vectors, held in registers while k
// runs. For products so small that what happens around the FMAs counts: the edge of C is masked instead of spilled, and
// a product that is only stored takes no part in alpha and beta.
//
// B may be of any type T that vectors are loaded from: its address in the Tile is then that of a T.
//
// The order of the sums is that of micro_kernel.h, so the bits are the same.
#pragma once

#include "micro_kernel.h"

namespace fl {
namespace {

// The last vector of a row may have fewer lanes; the others are full.
template <class S, class T, int M, int NV, bool Part>
__attribute__((noinline)) void direct_tile(const Tile& t) {
  using V = typename S::V;
  constexpr int last = NV - 1;
  const int64_t lanes = Part ? t.width - last * S::W : S::W;
  const typename S::Mask mask = S::mask(lanes);
  const int64_t a_rs = t.a_rs, a_cs = t.a_cs, b_rs = t.b_rs;
  const T* b = reinterpret_cast<const T*>(t.b);
  const float* a[(M + 2) / 3];  // a base for every third row, the others by scaled index
#pragma GCC unroll 8
  for (int g = 0; g < (M + 2) / 3; ++g) a[g] = t.a + 3 * g * a_rs;
  bool first = t.first;
  for (int64_t left = t.k; left > 0; left -= chain_length) {
    V acc[M][NV];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) acc[i][v] = S::zero();
#pragma GCC unroll 2
    for (int64_t q = left < chain_length ? left : chain_length; q > 0; --q) {
      V bv[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) bv[v] = Part && v == last ? S::load_part(b + v * S::W, mask) : S::load(b + v * S::W);
      b += b_rs;
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const float* const x = a[i / 3] + (i % 3) * a_rs;
        if constexpr (NV == 1) {
          S::fma_scalar(acc[i][0], x, bv[0]);
        } else if constexpr (S::by_lane) {
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v) S::fma_scalar(acc[i][v], x, bv[v]);
        } else {
          const V xv = S::set1(*x);
#pragma GCC unroll 4
          for (int v = 0; v < NV; ++v) S::fma(acc[i][v], xv, bv[v]);
        }
      }
      for (auto& p : a) p += a_cs;
    }
    auto each = [&](auto put) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) {
          float* const c = t.c + i * t.c_rs + v * S::W;
          const bool part = Part && v == last;
          auto old = [&]() __attribute__((always_inline)) { return part ? S::load_part(c, mask) : S::load(c); };
          const V sum = put(acc[i][v], old);
          if (part) S::store_part(c, sum, lanes);
          else S::store(c, sum);
        }
    };
    const V alpha = S::set1(t.alpha), beta = S::set1(t.beta);
    if (first && t.beta == 0.0f && t.alpha == 1.0f) {
      each([&](V sum, auto) __attribute__((always_inline)) { return sum; });
    } else if (first && t.beta == 0.0f) {
      each([&](V sum, auto) __attribute__((always_inline)) { return S::mul(alpha, sum); });
    } else {
      each([&](V sum, auto old) __attribute__((always_inline)) {
        V c = old();
        if (first) c = S::mul(beta, c);
        S::fma(c, alpha, sum);
        return c;
      });
    }
    first = false;
  }
}

template <class S, class T, int NV, bool Part, class Rows>
struct DirectTable;
template <class S, class T, int NV, bool Part, int... I>
struct DirectTable<S, T, NV, Part, std::integer_sequence<int, I...>> {
  static constexpr TileFunction function[] = {direct_tile<S, T, I + 1, NV, Part>...};
};
// Rows of a tile of one vector: as many chains of FMAs as cover their latency.
constexpr int narrow_rows = 8;
// Of wider ones; B in 16 bits is less often in two lines. And of strips, which may end in tiles of one vector.
template <class S, class T>
constexpr int wide_rows = S::direct_rows > narrow_rows && sizeof(T) == 2 ? narrow_rows : S::direct_rows;
template <class S, class T>
constexpr int strip_rows = wide_rows<S, T> > narrow_rows ? wide_rows<S, T> : narrow_rows;

template <class S, class T, int NV, int MaxRows>
TileFunction direct_function(int64_t width, int64_t rows) {
  using Rows = std::make_integer_sequence<int, MaxRows>;
  // A masked load in every step costs 2 % even where it is a single instruction (AVX-512 on Zen 4, 64x64x64).
  return (width < NV * S::W ? DirectTable<S, T, NV, true, Rows>::function
                            : DirectTable<S, T, NV, false, Rows>::function)[rows - 1];
}

// The tile for the columns that are left, at most S::NV vectors of them.
template <class S, class T, int NV = S::NV>
TileFunction direct_function_for(int64_t width, int64_t rows) {
  using Narrow = typename S::Narrow;
  if (width <= Narrow::W) return direct_function<Narrow, T, 1, strip_rows<S, T>>(width, rows);
  if constexpr (NV > 1) {
    if (width > (NV - 1) * S::W) return direct_function<S, T, NV, wide_rows<S, T>>(width, rows);
    return direct_function_for<S, T, NV - 1>(width, rows);
  } else {
    return direct_function<S, T, 1, strip_rows<S, T>>(width, rows);
  }
}

}  // namespace
}  // namespace fl
