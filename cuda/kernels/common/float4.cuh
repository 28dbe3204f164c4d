// Four neighbouring floats at a time.
#pragma once

#include <cuda_runtime.h>

namespace fl {

__device__ __forceinline__ float component(const float4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// 16 bytes at a time, between any two of registers, shared and global memory.
__device__ __forceinline__ void copy4(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

}  // namespace fl
