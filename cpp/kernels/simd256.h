// Vectors of eight floats: what the AVX2 kernels are made of, and the narrow tiles of the AVX-512 ones.
#pragma once

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "core/halves.h"
#include "plan/cpu_blocking.h"
#include "transpose8.h"

namespace fl {
namespace {

struct Simd256 {
  using V = __m256;
  using Mask = __m256i;
  static constexpr int W = 8;
  using Far = Simd256;                   // what turns matrices that the caches do not hold
  static constexpr bool streams = true;  // whether it can write past the caches
  static constexpr int block = 8;        // side of the register transpose
  // 6x16: 12 accumulators, 2 vectors of B, 1 broadcast of A: 15 of 16 registers.
  static constexpr int MR = 6, NV = 2;
  static constexpr bool by_lane = false;  // FMAs take a number of A from all lanes of a vector
  static constexpr int registers = 16;
  static constexpr CpuBlocking blocking = avx2_blocking;
  // Unpacked tiles.
  using Narrow = Simd256;
  static constexpr int direct_rows = 6;

  static V zero() { return _mm256_setzero_ps(); }
  static V set1(float x) { return _mm256_set1_ps(x); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  template <class T>
  static V load(const T* p) {
    return widened<T>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static V mul(V x, V y) { return _mm256_mul_ps(x, y); }
  static V add(V x, V y) { return _mm256_add_ps(x, y); }
  static V madd(V x, V y, V z) { return _mm256_fmadd_ps(x, y, z); }  // takes x from memory
  // asm: given the choice, gcc 12 takes the forms that overwrite a factor, and then spills accumulators (11 % slower).
#if defined(__AVX512VL__)
  static void fma(V& acc, V x, V y) { asm("vfmadd231ps %2, %1, %0" : "+v"(acc) : "v"(x), "v"(y)); }  // 32 registers
  static void fma_scalar(V& acc, const float* x, V y) {                                              // acc += *x * y
    asm("vfmadd231ps %2%{1to8%}, %1, %0" : "+v"(acc) : "v"(y), "m"(*x));
  }
#else
  static void fma(V& acc, V x, V y) { asm("vfmadd231ps %2, %1, %0" : "+x"(acc) : "x"(x), "x"(y)); }
  static void fma_scalar(V& acc, const float* x, V y) { fma(acc, set1(*x), y); }
#endif

  static Mask mask(int64_t n) {  // the first n lanes, n clamped to 0..W
    const int lanes = n < 0 ? 0 : n > W ? W : int(n);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V load_part(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  template <class T>
  static V load_part(const T* p, Mask m) {
    return widened<T>(first_of_16_bits(p, __builtin_popcount(unsigned(_mm256_movemask_ps(_mm256_castsi256_ps(m))))));
  }
  static void store_part(float* p, V v, int64_t n) {  // no masked store: microcoded on Zen
    if (n >= W) return store(p, v);
    __m128 x = _mm256_castps256_ps128(v);
    if (n & 4) {
      _mm_storeu_ps(p, x);
      p += 4;
      x = _mm256_extractf128_ps(v, 1);
    }
    if (n & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), x);
      p += 2;
      x = _mm_movehl_ps(x, x);
    }
    if (n & 1) _mm_store_ss(p, x);
  }
  // dst[q] = the sum of the lanes of v[q], for q < n <= 8. Blends and shuffles: half the port load of horizontal adds.
  static void store_sums(const V* v, float* dst, int64_t n) { store_part(dst, sums8(v), n); }
  // A run of floats; `stream`: past the caches, in whole lines.
  static void copy(float* dst, const float* src, int64_t n, bool stream) {
    int64_t i = 0;
    if (stream) {
      for (; i < n && reinterpret_cast<uintptr_t>(dst + i) % 64; ++i) dst[i] = src[i];
      for (; i + 16 <= n; i += 16) {
        _mm256_stream_ps(dst + i, load(src + i));
        _mm256_stream_ps(dst + i + 8, load(src + i + 8));
      }
    }
    for (; i + W <= n; i += W) store(dst + i, load(src + i));
    for (; i < n; ++i) dst[i] = src[i];
  }
  static void fence() { _mm_sfence(); }
  static void transpose(const float* src, int64_t rs, int rows, float* dst, int64_t ds) {
    transpose8(src, rs, rows, dst, ds);
  }
  // Four rows of the block at b, transposed: row[q] holds element q of each of eight columns.
  template <class T>
  static inline __attribute__((always_inline)) void turn_four(const T* b, int64_t b_cs, V* row) {
    V in[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q)
      in[q] = _mm256_insertf128_ps(_mm256_castps128_ps256(four(b + q * b_cs)), four(b + (q + 4) * b_cs), 1);
    const V t0 = _mm256_unpacklo_ps(in[0], in[1]), t1 = _mm256_unpackhi_ps(in[0], in[1]);
    const V t2 = _mm256_unpacklo_ps(in[2], in[3]), t3 = _mm256_unpackhi_ps(in[2], in[3]);
    row[0] = _mm256_shuffle_ps(t0, t2, 0x44);
    row[1] = _mm256_shuffle_ps(t0, t2, 0xee);
    row[2] = _mm256_shuffle_ps(t1, t3, 0x44);
    row[3] = _mm256_shuffle_ps(t1, t3, 0xee);
  }

 private:
  template <class T>  // Half or Bfloat
  static V widened(__m128i bits) {
    if constexpr (std::is_same_v<T, Half>) return _mm256_cvtph_ps(bits);
    // One shuffle after a load into both halves; widening and shifting are two.
    const __m256i upper = _mm256_setr_epi8(-1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,  //
                                           -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bits), upper));
  }
  static __m128 four(const float* p) { return _mm_loadu_ps(p); }
  template <class T>
  static __m128 four(const T* p) {
    return _mm256_castps256_ps128(widened<T>(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  // n <= 8 numbers and zeros. Of four and more, the last four are read once more and lose what they share.
  static __m128i first_of_16_bits(const void* from, int n) {
    const char* const p = static_cast<const char*>(from);
    uint64_t low = 0, high = 0;
    if (n >= 4) {
      memcpy(&low, p, 8);
      memcpy(&high, p + 2 * (n - 4), 8);
      high = high >> 8 * (8 - n) >> 8 * (8 - n);
    } else {
      for (int i = 0; i < n; ++i) {
        uint16_t bits;
        memcpy(&bits, p + 2 * i, 2);
        low |= uint64_t(bits) << 16 * i;
      }
    }
    return _mm_set_epi64x(int64_t(high), int64_t(low));
  }
};

}  // namespace
}  // namespace fl
