#if defined(__x86_64__)
#include "simd.h"

#include "../transpose.h"

namespace fl {
namespace {

// Columns of a 16x16 block whose rows are given: dst[j * ds + i] = row[i][j]. The compiler would keep the sixteen
// addresses of a block in memory if it knew that they are the same distance apart in every block.
inline __attribute__((always_inline)) void store_transposed16(const __m512* row, float* dst, int64_t ds) {
  __m512 t[16];
#pragma GCC unroll 4
  for (int q = 0; q < 16; q += 4) {
    const __m512 a = _mm512_unpacklo_ps(row[q], row[q + 1]), b = _mm512_unpackhi_ps(row[q], row[q + 1]);
    const __m512 c = _mm512_unpacklo_ps(row[q + 2], row[q + 3]), d = _mm512_unpackhi_ps(row[q + 2], row[q + 3]);
    t[q] = _mm512_shuffle_ps(a, c, 0x44);
    t[q + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[q + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[q + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const __m512 a = _mm512_shuffle_f32x4(t[q], t[q + 4], 0x44), b = _mm512_shuffle_f32x4(t[q], t[q + 4], 0xee);
    const __m512 c = _mm512_shuffle_f32x4(t[q + 8], t[q + 12], 0x44),
                 d = _mm512_shuffle_f32x4(t[q + 8], t[q + 12], 0xee);
    float* out = dst + q * ds;
    asm("" : "+r"(out));
    _mm512_storeu_ps(out, _mm512_shuffle_f32x4(a, c, 0x88));
    _mm512_storeu_ps(out + 4 * ds, _mm512_shuffle_f32x4(a, c, 0xdd));
    _mm512_storeu_ps(out + 8 * ds, _mm512_shuffle_f32x4(b, d, 0x88));
    _mm512_storeu_ps(out + 12 * ds, _mm512_shuffle_f32x4(b, d, 0xdd));
  }
}

// Beyond the caches of a Zen loads of whole lines from sixteen rows, most of them across a boundary, miss L1 more often
// (10007x4099: 2.1 copies; 8x8 blocks: 1.4). Not on a Xeon, whose L1 is larger (1.45; 1.58).
struct Turn16 {
  using Far = Simd256;
  static constexpr bool streams = true;
  static constexpr int block = 16;
  static inline __attribute__((always_inline)) void transpose(const float* src, int64_t rs, int, float* dst,
                                                              int64_t ds) {
    __m512 row[16];
#pragma GCC unroll 4
    for (int q = 0; q < 16; q += 4) {
      const float* in = src + q * rs;
      asm("" : "+r"(in));
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) row[q + k] = Simd::load(in + k * rs);
    }
    store_transposed16(row, dst, ds);
  }
  // Of a block that has `rows` rows and the first of so many columns; sixteen of either are written.
  static __attribute__((noinline)) void transpose_part(const float* src, int64_t rs, int64_t rows, int64_t columns,
                                                       float* dst, int64_t ds) {
    __m512 row[16];
    const Simd::Mask there = Simd::mask(columns);
#pragma GCC unroll 16
    for (int q = 0; q < 16; ++q) row[q] = q < rows ? Simd::load_part(src + q * rs, there) : Simd::zero();
    store_transposed16(row, dst, ds);
  }
  static void copy(float* dst, const float* src, int64_t n, bool stream) {
    if (stream) return Simd256::copy(dst, src, n, true);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) Simd::store(dst + i, Simd::load(src + i));
    if (i < n) Simd::store_part(dst + i, Simd::load_part(src + i, Simd::mask(n - i)), n - i);
  }
  static void fence() { Simd256::fence(); }
};

}  // namespace

void transpose_avx512(const TransposeArgs& p, const Context& context) { transpose<Turn16>(p, context); }

}  // namespace fl
#endif
