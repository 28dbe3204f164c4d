// Elements of an operand in float32 or in 16 bits, as float32: one, or four neighbours by one load. That has 8 bytes of
// what is in 16 bits, so that a thread's share is the same in every type, and with it the order of the sums.
#pragma once

#include <cuda_fp16.h>

#include "core/stored.h"
#include "cuda/kernels/common/ptx.cuh"

namespace fl {

__device__ __forceinline__ float load1(const float* from) { return __ldg(from); }
__device__ __forceinline__ float load1(const Bfloat* from) { return to_float(Bfloat{__ldg(&from->bits)}); }
__device__ __forceinline__ float load1(const Half* from) { return __half2float(__ushort_as_half(__ldg(&from->bits))); }

__device__ __forceinline__ float2 widen2(uint32_t two, Bfloat) {
  return {__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u)};
}
__device__ __forceinline__ float2 widen2(uint32_t two, Half) {
  return __half22float2(*reinterpret_cast<const __half2*>(&two));
}
// A number of a type that is known when the kernel runs.
__device__ __forceinline__ float widened(uint16_t bits, bool bfloat) {
  return bfloat ? to_float(Bfloat{bits}) : widen2(bits, Half()).x;
}

// Read once, as ptx::load4_once.
__device__ __forceinline__ uint2 load8_bytes_once(const void* from) {  // ld.global.nc.L1::no_allocate.v2.u32
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
  return v;
}
__device__ __forceinline__ float4 load4_once(const float* from) { return ptx::load4_once(from); }
template <class Number>
__device__ __forceinline__ float4 load4_once(const Number* from) {
  const uint2 four = load8_bytes_once(from);
  const float2 first = widen2(four.x, Number()), second = widen2(four.y, Number());
  return {first.x, first.y, second.x, second.y};
}

// The same of what other threads read too.
__device__ __forceinline__ float4 load4(const float* from) { return __ldcg(reinterpret_cast<const float4*>(from)); }
template <class Number>
__device__ __forceinline__ float4 load4(const Number* from) {
  return load4_once(from);
}

}  // namespace fl
