// PTX instructions for shared memory, and for asynchronous copies into it (ptx.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fl::ptx {

// ---------------------------------------------------------------- shared memory
__device__ __forceinline__ uint32_t shared_address(const void* p) {  // cvta.to.shared
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ float4 load4(uint32_t from) {  // ld.shared.v4.f32
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(from));
  return v;
}
__device__ __forceinline__ float load1(uint32_t from) {  // ld.shared.f32
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from));
  return v;
}
__device__ __forceinline__ float2 load2(uint32_t from) {  // ld.shared.v2.f32
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(from));
  return v;
}
__device__ __forceinline__ void store1(uint32_t to, float v) {  // st.shared.f32
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}
__device__ __forceinline__ void store2(uint32_t to, float2 v) {  // st.shared.v2.f32
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(v.x), "f"(v.y) : "memory");
}
__device__ __forceinline__ void store4(uint32_t to, float4 v) {  // st.shared.v4.f32
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

// ---------------------------------------------------------------- asynchronous copies, global to shared (sm_80)
// `bytes` of them are read, the rest of the 4 or 16 is filled with zeros.
__device__ __forceinline__ void copy_async4(uint32_t to, const float* from) {  // cp.async.ca
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_async4(uint32_t to, const float* from, int bytes) {  // cp.async.ca with src-size
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async16(uint32_t to, const float* from) {  // cp.async.cg
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_async16(uint32_t to, const float* from, int bytes) {  // cp.async.ca with src-size
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async16_filled(uint32_t to, const float* from, int bytes) {  // cp.async.cg
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
__device__ __forceinline__ void wait_copies() {  // cp.async.wait_group: all but the latest N groups have arrived
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace fl::ptx
