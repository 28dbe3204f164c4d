// 8x8 floats transposed in AVX registers: dst[j * ds + i] = src[i * rs + j].
#pragma once

#include <immintrin.h>
#include <stdint.h>

namespace fl {
namespace {

struct Block8 {
  __m256 row[8];
};

// `rows` of 8 exist; the others read as zero. The halves of rows q and q + 4 share a register from the start: the two
// lanes are joined by loads, which cost no shuffle.
inline __attribute__((always_inline)) Block8 load_transposed8(const float* src, int64_t rs, int rows) {
  __m256 lo[4], hi[4];
  auto half = [&](int i, int j) { return i < rows ? _mm_loadu_ps(src + i * rs + j) : _mm_setzero_ps(); };
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    lo[q] = _mm256_insertf128_ps(_mm256_castps128_ps256(half(q, 0)), half(q + 4, 0), 1);
    hi[q] = _mm256_insertf128_ps(_mm256_castps128_ps256(half(q, 4)), half(q + 4, 4), 1);
  }
  Block8 out;
  auto four = [](const __m256* in, __m256* result) {
    const __m256 t0 = _mm256_unpacklo_ps(in[0], in[1]), t1 = _mm256_unpackhi_ps(in[0], in[1]);
    const __m256 t2 = _mm256_unpacklo_ps(in[2], in[3]), t3 = _mm256_unpackhi_ps(in[2], in[3]);
    result[0] = _mm256_shuffle_ps(t0, t2, 0x44);
    result[1] = _mm256_shuffle_ps(t0, t2, 0xee);
    result[2] = _mm256_shuffle_ps(t1, t3, 0x44);
    result[3] = _mm256_shuffle_ps(t1, t3, 0xee);
  };
  four(lo, out.row);
  four(hi, out.row + 4);
  return out;
}

inline __attribute__((always_inline)) void transpose8(const float* src, int64_t rs, int rows, float* dst, int64_t ds) {
  const Block8 block = rows == 8 ? load_transposed8(src, rs, 8) : load_transposed8(src, rs, rows);
#pragma GCC unroll 8
  for (int q = 0; q < 8; ++q) _mm256_storeu_ps(dst + q * ds, block.row[q]);
}

// Lane q of the result is the sum of the lanes of v[q].
inline __attribute__((always_inline)) __m256 sums8(const __m256* v) {
  __m256 t[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q)
    t[q] =
        _mm256_add_ps(_mm256_blend_ps(v[2 * q], v[2 * q + 1], 0xcc), _mm256_shuffle_ps(v[2 * q], v[2 * q + 1], 0x4e));
  const __m256 u0 = _mm256_add_ps(_mm256_shuffle_ps(t[0], t[1], 0x88), _mm256_shuffle_ps(t[0], t[1], 0xdd));
  const __m256 u1 = _mm256_add_ps(_mm256_shuffle_ps(t[2], t[3], 0x88), _mm256_shuffle_ps(t[2], t[3], 0xdd));
  return _mm256_add_ps(_mm256_blend_ps(u0, u1, 0xf0), _mm256_permute2f128_ps(u0, u1, 0x21));
}

}  // namespace
}  // namespace fl
