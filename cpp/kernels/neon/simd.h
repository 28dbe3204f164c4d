// NEON: vectors of four floats, 32 registers, FMAs that take one factor from a lane of a register.
#pragma once

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "core/halves.h"
#include "plan/cpu_blocking.h"

namespace fl {
namespace {

struct Simd {
  using V = float32x4_t;
  using Mask = int;
  static constexpr int W = 4;
  using Far = Simd;                       // what turns matrices that the caches do not hold
  static constexpr bool streams = false;  // whether it can write past the caches
  static constexpr int block = 4;         // a line of each of its rows: four ways of L1 are all that a Neoverse has
  // 8x12: 24 accumulators, 3 vectors of B, 2 of A: 29 of 32 registers, and 24 FMAs for 5 loads. As many as 12x8 has,
  // and more than any other tile that fits: two loads and two FMAs start in a cycle, so loads hide in their shadow.
  static constexpr int MR = 8, NV = 3;
  static constexpr bool by_lane = true;
  static constexpr int registers = 32;
  static constexpr CpuBlocking blocking = neon_blocking;
  using Narrow = Simd;
  static constexpr int direct_rows = 8;

  static V zero() { return vdupq_n_f32(0.0f); }
  static V set1(float x) { return vdupq_n_f32(x); }
  static V load(const float* p) { return vld1q_f32(p); }
  static V load(const Half* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits))); }
  static V load(const Bfloat* p) { return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(&p->bits)), 16)); }
  static void store(float* p, V v) { vst1q_f32(p, v); }
  static V mul(V x, V y) { return vmulq_f32(x, y); }
  static V add(V x, V y) { return vaddq_f32(x, y); }
  static V madd(V x, V y, V z) { return vfmaq_f32(z, x, y); }
  static void fma(V& acc, V x, V y) { acc = vfmaq_f32(acc, x, y); }
  // acc += x[lane] * y. asm: of the intrinsic, gcc 12 copies an accumulator in every step.
  template <int lane>
  static void fma_lane(V& acc, V x, V y) {
    asm("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(acc) : "w"(y), "w"(x), "n"(lane));
  }
  // acc += *x * y. asm: a load of one number and an FMA by lane 0; gcc 12 loads it into all lanes, which takes a place
  // of the FMAs' pipes, and no address but a plain one.
  static void fma_scalar(V& acc, const float* x, V y) {
    asm("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(acc) : "w"(y), "w"(*x));
  }

  static Mask mask(int64_t n) { return n < 0 ? 0 : n > W ? W : int(n); }  // the first n lanes
  static V load_part(const float* p, Mask n) {
    if (n == W) return load(p);
    V v = zero();
    if (n == 3) v = vld1q_lane_f32(p + 2, v, 2);
    if (n >= 2) return vcombine_f32(vld1_f32(p), vget_high_f32(v));
    return n == 1 ? vld1q_lane_f32(p, v, 0) : v;
  }
  template <class T>
  static V load_part(const T* p, Mask n) {
    T lanes[W] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  static void store_part(float* p, V v, int64_t n) {
    if (n >= W) return store(p, v);
    if (n >= 2) vst1_f32(p, vget_low_f32(v));
    if (n == 3) vst1q_lane_f32(p + 2, v, 2);
    if (n == 1) vst1q_lane_f32(p, v, 0);
  }
  // dst[q] = the sum of the lanes of v[q], for q < n <= 8.
  static void store_sums(const V* v, float* dst, int64_t n) {
    store_part(dst, sums4(v), n);
    if (n > 4) store_part(dst + 4, sums4(v + 4), n - 4);
  }
  static V sums4(const V* v) { return vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3])); }
  // A run of floats. Stores past the caches are a hint on AArch64 that its cores make no use of: they see whole lines
  // written one after the other, and stop reading them first.
  static void copy(float* dst, const float* src, int64_t n, bool) { memcpy(dst, src, size_t(n) * sizeof(float)); }
  static void fence() {}
  static void transpose(const float* src, int64_t rs, int rows, float* dst, int64_t ds) {
    V r[4];
    for (int i = 0; i < 4; ++i) r[i] = i < rows ? load(src + i * rs) : zero();
    turn(r);
    for (int i = 0; i < 4; ++i) store(dst + i * ds, r[i]);
  }
  // Four rows of the block at b, transposed: row[q] holds element q of each of four columns.
  template <class T>
  static void turn_four(const T* b, int64_t b_cs, V* row) {
    for (int q = 0; q < 4; ++q) row[q] = load(b + q * b_cs);
    turn(row);
  }

 private:
  static V pairs(float32x4_t x, float32x4_t y, bool high) {  // two neighbouring lanes of each
    const float64x2_t a = vreinterpretq_f64_f32(x), b = vreinterpretq_f64_f32(y);
    return vreinterpretq_f32_f64(high ? vzip2q_f64(a, b) : vzip1q_f64(a, b));
  }
  static void turn(V* r) {
    const V t0 = vtrn1q_f32(r[0], r[1]), t1 = vtrn2q_f32(r[0], r[1]);
    const V t2 = vtrn1q_f32(r[2], r[3]), t3 = vtrn2q_f32(r[2], r[3]);
    r[0] = pairs(t0, t2, false), r[1] = pairs(t1, t3, false);
    r[2] = pairs(t0, t2, true), r[3] = pairs(t1, t3, true);
  }
};

}  // namespace
}  // namespace fl
