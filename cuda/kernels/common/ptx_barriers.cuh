// PTX instructions by which threads, warps and blocks wait for one another, and share out registers (ptx.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace fl::ptx {

// ---------------------------------------------------------------- barriers in shared memory (sm_80)
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {  // mbarrier.init
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_end(uint32_t barrier) {  // mbarrier.inval
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Before others use it. For threads of the same block __syncthreads() is enough, and code for less than 9.0 knows no
// others.
__device__ __forceinline__ void barrier_init_fence() {  // fence.mbarrier_init (sm_90)
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {  // mbarrier.arrive
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// The thread's arrival counts once its copies have arrived; it does not wait for that itself.
__device__ __forceinline__ void barrier_arrive_after_copies(uint32_t barrier) {  // cp.async.mbarrier.arrive.noinc
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ bool barrier_passed(uint32_t barrier, uint32_t parity) {  // mbarrier.test_wait.parity
  uint32_t passed;
  asm volatile(
      "{\n\t.reg .pred done;\n\tmbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, done;\n\t}"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed;
}
// mbarrier.try_wait.parity, which lets the thread sleep for a while; before 9.0 mbarrier.test_wait.parity, which does
// not.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n\t.reg .pred done;\n\tagain:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
#else
  while (!barrier_passed(barrier, parity)) {
  }
#endif
}
// For threads that wait most of the time: before 9.0 they sleep between two looks, so as to leave the issue slots to
// others.
__device__ __forceinline__ void barrier_wait_patiently(uint32_t barrier, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  barrier_wait(barrier, parity);
#else
  while (!barrier_passed(barrier, parity)) __nanosleep(100);
#endif
}
// An arrival, and bytes that the phase waits for besides arrivals (sm_90).
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {  // mbarrier.arrive.expect_tx
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// ---------------------------------------------------------------- barriers by number, of part of a block
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {  // bar.sync
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {  // bar.arrive: does not wait
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
template <int ID, int THREADS>
__device__ __forceinline__ void named_barrier() {  // bar.sync of part of a block
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
}

// ---------------------------------------------------------------- flags in global memory
// A flag that another block waits for: what the thread has written or seen before is there for who reads it set.
__device__ __forceinline__ void store_release(unsigned* flag, unsigned value) {  // st.release.gpu
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ __forceinline__ unsigned load_acquire(const unsigned* flag) {  // ld.acquire.gpu
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// ---------------------------------------------------------------- clusters (sm_90)
// The same without ordering memory: says only that this block has begun, so that its shared memory may be written.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// Both at once, for warps whose threads have parted.
__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
__device__ __forceinline__ uint32_t address_in(uint32_t block,
                                               uint32_t address) {  // mapa: the same place in another block
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}
__device__ __forceinline__ void store_cluster(uint32_t to, float v) {  // st.shared::cluster.f32
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}
__device__ __forceinline__ void store4_cluster(uint32_t to, float4 v) {  // st.shared::cluster.v4.f32
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}

// ---------------------------------------------------------------- registers and parameters (sm_90a)
// Every warp of a warpgroup has to call these. N registers per thread from here on.
template <int N>
__device__ __forceinline__ void registers_up() {  // setmaxnreg.inc
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ __forceinline__ void registers_down() {  // setmaxnreg.dec
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

}  // namespace fl::ptx
