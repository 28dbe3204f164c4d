// AVX-512: vectors of sixteen floats, 32 registers, masks at no cost.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "../simd256.h"

namespace fl {
namespace {

struct Simd {
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int W = 16;
  static constexpr int block = 8;
  // 14x32: 28 accumulators, 2 vectors of B, 1 broadcast of A: 31 of 32 registers.
  static constexpr int MR = 14, NV = 2;
  static constexpr bool by_lane = false;
  static constexpr int registers = 32;
  static constexpr CpuBlocking blocking = avx512_blocking;
  // Unpacked tiles: twelve rows, since vectors of B that begin anywhere in a line are two loads, too many for a Xeon
  // with eight rows; and half vectors where that is enough.
  using Narrow = Simd256;
  static constexpr int direct_rows = 12;

  static V zero() { return _mm512_setzero_ps(); }
  static V set1(float x) { return _mm512_set1_ps(x); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  template <class T>
  static V load(const T* p) {
    return widened<T>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static V mul(V x, V y) { return _mm512_mul_ps(x, y); }
  static V add(V x, V y) { return _mm512_add_ps(x, y); }
  static V madd(V x, V y, V z) { return _mm512_fmadd_ps(x, y, z); }  // takes x from memory
  // asm: given the choice, gcc 12 takes the forms that overwrite a factor, and then spills accumulators.
  static void fma(V& acc, V x, V y) { asm("vfmadd231ps %2, %1, %0" : "+v"(acc) : "v"(x), "v"(y)); }
  // acc += *x * y. A broadcast of its own takes half the time of an FMA on Zen 4: tiles of one vector reached 88
  // GFLOP/s with it and 118 without.
  static void fma_scalar(V& acc, const float* x, V y) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(y), "m"(*x));
  }

  static Mask mask(int64_t n) { return n >= W ? Mask(0xffff) : n <= 0 ? Mask(0) : Mask((1u << n) - 1); }
  static V load_part(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  template <class T>
  static V load_part(const T* p, Mask m) {
    return widened<T>(_mm256_maskz_loadu_epi16(m, p));
  }
  static void store_part(float* p, V v, int64_t n) { _mm512_mask_storeu_ps(p, mask(n), v); }
  // As shuffles: the extraction intrinsics of gcc 12 warn about a variable of their own.
  static __m256 low(V v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7); }
  static __m256 high(V v) { return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15); }
  // dst[q] = the sum of the lanes of v[q], for q < n <= 8.
  static void store_sums(const V* v, float* dst, int64_t n) {
    __m256 half[8];
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) half[q] = _mm256_add_ps(low(v[q]), high(v[q]));
    _mm256_mask_storeu_ps(dst, __mmask8(n >= 8 ? 0xff : (1u << n) - 1), sums8(half));
  }
  // 8x8 on half registers: as many shuffles per element as 16x16 on whole ones, and half the tail.
  static void transpose(const float* src, int64_t rs, int rows, float* dst, int64_t ds) {
    transpose8(src, rs, rows, dst, ds);
  }

 private:
  template <class T>  // Half or Bfloat
  static V widened(__m256i bits) {
    // Masks of all lanes cost nothing, and spare gcc 12 its warnings of an undefined source.
    if constexpr (std::is_same_v<T, Half>) return _mm512_maskz_cvtph_ps(0xffff, bits);
    else return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, bits), 16));
  }
};

}  // namespace
}  // namespace fl
