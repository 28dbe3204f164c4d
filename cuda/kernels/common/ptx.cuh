// The PTX instructions that CUDA C++ has no short name for, one function each. Shared memory is addressed by the 32-bit
// numbers that shared_address() returns. A function costs nothing where it is not called, so this header may be
// included in code for any architecture; what a kernel calls has to exist on the one it is compiled for.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
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
// A flag that another block waits for: what the thread has written or seen before is there for who reads it set.
__device__ __forceinline__ void store_release(unsigned* flag, unsigned value) {  // st.release.gpu
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ __forceinline__ unsigned load_acquire(const unsigned* flag) {  // ld.acquire.gpu
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
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

// ---------------------------------------------------------------- barriers in shared memory (sm_80)
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {  // mbarrier.init
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
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
// ---------------------------------------------------------------- barriers of part of a block
__device__ __forceinline__ void block_barrier_sync(int id, int threads) {  // bar.sync
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void block_barrier_arrive(int id, int threads) {  // bar.arrive: does not wait
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
template <int ID, int THREADS>
__device__ __forceinline__ void named_barrier() {  // bar.sync of part of a block
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS) : "memory");
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
