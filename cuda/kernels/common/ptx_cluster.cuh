// The PTX instructions of stores that are counted where they arrive, in the shared memory of another block of a cluster
// (sm_90).
#pragma once

#include "cuda/kernels/common/ptx_barriers.cuh"

namespace fl::ptx {

// Counts its 16 bytes at a barrier of the block that it goes to.
__device__ __forceinline__ void store4_counted(uint32_t to, float4 v, uint32_t barrier) {  // st.async
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
               "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(barrier)
               : "memory");
}
// barrier_wait() for what other blocks have written.
__device__ __forceinline__ void barrier_wait_for_cluster(uint32_t barrier, uint32_t parity) {  // .acquire.cluster
  asm volatile(
      "{\n\t.reg .pred done;\n\tagain:\n\t"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::"r"(
          barrier),
      "r"(parity)
      : "memory");
}

}  // namespace fl::ptx
