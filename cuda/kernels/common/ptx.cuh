// The PTX instructions that CUDA C++ has no short name for, one function each. Shared memory is addressed by the 32-bit
// numbers that shared_address() returns. A function costs nothing where it is not called, so these headers may be
// included in code for any architecture; what a kernel calls has to exist on the one it is compiled for.
#pragma once

#include <cstddef>

#include "cuda/kernels/common/ptx_barriers.cuh"
#include "cuda/kernels/common/ptx_shared.cuh"

namespace fl::ptx {

// ---------------------------------------------------------------- global memory
// Read once: not kept in L1, where something else is worth keeping.
__device__ __forceinline__ float4 load4_once(const float* from) {  // ld.global.nc.L1::no_allocate.v4.f32
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}
// Loads with the policy leave this fraction of the lines in L2 as other loads do; the rest is the first to be replaced.
// Code for less than 8.0 knows no policies and loads as usual.
__device__ __forceinline__ uint64_t l2_fraction_policy(float fraction) {  // createpolicy.fractional (sm_80)
  uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_normal.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"(fraction));
#endif
  return policy;
}
__device__ __forceinline__ float4 load4_once(const float* from, uint64_t policy) {  // with .L2::cache_hint (sm_80)
#if __CUDA_ARCH__ >= 800
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from), "l"(policy));
  return v;
#else
  return load4_once(from);
#endif
}
__device__ __forceinline__ void prefetch_l1(const void* p) {  // prefetch.global.L1
  asm volatile("prefetch.global.L1 [%0];" ::"l"(p) : "memory");
}
__device__ __forceinline__ void prefetch_l2(const void* p) {  // prefetch.global.L2
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
}

// ---------------------------------------------------------------- warps
// Of all 32 threads, in all of them. One instruction (redux.sync) from 8.0 on, five exchanges before.
__device__ __forceinline__ unsigned warp_max(unsigned x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, x);
#else
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x = max(x, __shfl_xor_sync(0xffffffffu, x, apart));
  return x;
#endif
}
__device__ __forceinline__ unsigned warp_or(unsigned x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(0xffffffffu, x);
#else
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x |= __shfl_xor_sync(0xffffffffu, x, apart);
  return x;
#endif
}

// ---------------------------------------------------------------- registers and parameters
// blockIdx.x and threadIdx.x, read anew at every call: nothing that follows from them is kept in registers meanwhile.
__device__ __forceinline__ unsigned block_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}
__device__ __forceinline__ unsigned thread_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
  return index;
}
// Reads a kernel's parameters before it waits, so that they are in the constant cache when it has to be quick.
template <class Plan>
__device__ __forceinline__ void touch(const Plan& plan) {
#pragma unroll
  for (std::size_t i = 0; i < sizeof(Plan) / 64; ++i)
    asm volatile("" ::"r"(reinterpret_cast<const unsigned*>(&plan)[i * 16]));
}

}  // namespace fl::ptx
