// Vectors of four floats by the compiler's vector extension: SSE2 on x86-64, NEON on AArch64. Products are rounded
// before they are added (CMakeLists.txt), so that the bits are the same on every CPU.
#pragma once

#include <stdint.h>
#include <string.h>

#include "core/halves.h"
#include "plan/cpu_blocking.h"

namespace fl {
namespace {

struct Simd {
  typedef float V __attribute__((vector_size(16)));
  using Mask = int;
  static constexpr int W = 4;
  using Far = Simd;                       // what turns matrices that the caches do not hold
  static constexpr bool streams = false;  // whether it can write past the caches
  static constexpr int block = 4;
  static constexpr int MR = 6, NV = 2;  // 12 accumulators of 16 registers
  static constexpr bool by_lane = false;
  static constexpr int registers = 16;
  static constexpr CpuBlocking blocking = portable_blocking;
  using Narrow = Simd;
  static constexpr int direct_rows = 6;

  static V zero() { return V{}; }
  static V set1(float x) { return V{x, x, x, x}; }
  static V load(const float* p) {
    V v;
    memcpy(&v, p, sizeof v);
    return v;
  }
  static V load(const Half* p) {  // as to_float()
    const Bits h = widened(p), magnitude = (h & 0x7fff) << 13;
    const Bits special = Bits(magnitude >= 0x0f800000) & 0x7f800000;
    return V(Bits(V(magnitude) * 0x1p112f) | special | (h & 0x8000) << 16);
  }
  static V load(const Bfloat* p) { return V(widened(p) << 16); }
  static void store(float* p, V v) { memcpy(p, &v, sizeof v); }
  static V mul(V x, V y) { return x * y; }
  static V add(V x, V y) { return x + y; }
  static V madd(V x, V y, V z) { return x * y + z; }
  static void fma(V& acc, V x, V y) { acc += x * y; }
  static void fma_scalar(V& acc, const float* x, V y) { fma(acc, set1(*x), y); }

  static Mask mask(int64_t n) { return n < 0 ? 0 : n > W ? W : int(n); }
  static V load_part(const float* p, Mask n) {
    if (n == W) return load(p);
    V v{};
    for (int i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  template <class T>
  static V load_part(const T* p, Mask n) {
    T lanes[W] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  static void store_part(float* p, V v, int64_t n) {
    if (n >= W) return store(p, v);
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }
  // dst[q] = the sum of the lanes of v[q], for q < n <= 8.
  static void store_sums(const V* v, float* dst, int64_t n) {
    for (int64_t q = 0; q < n; ++q) dst[q] = (v[q][0] + v[q][2]) + (v[q][1] + v[q][3]);
  }
  static void copy(float* dst, const float* src, int64_t n, bool) { memcpy(dst, src, size_t(n) * sizeof(float)); }
  static void fence() {}
  static void transpose(const float* src, int64_t rs, int rows, float* dst, int64_t ds) {
    V r[4];
    for (int i = 0; i < 4; ++i) r[i] = i < rows ? load(src + i * rs) : zero();
    const V t0 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), t1 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const V t2 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5), t3 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    store(dst, __builtin_shufflevector(t0, t2, 0, 1, 4, 5));
    store(dst + ds, __builtin_shufflevector(t0, t2, 2, 3, 6, 7));
    store(dst + 2 * ds, __builtin_shufflevector(t1, t3, 0, 1, 4, 5));
    store(dst + 3 * ds, __builtin_shufflevector(t1, t3, 2, 3, 6, 7));
  }

 private:
  typedef uint32_t Bits __attribute__((vector_size(16)));
  static Bits widened(const void* p) {
    typedef uint16_t Lanes __attribute__((vector_size(8)));
    Lanes lanes;
    memcpy(&lanes, p, sizeof lanes);
    return __builtin_convertvector(lanes, Bits);
  }
};

}  // namespace
}  // namespace fl
