// The PTX instructions that only Hopper's matrix products use: warpgroup products, bulk copies, stores by tensor map.
// As in ptx.cuh a function costs nothing where it is not called; what calls these exists for sm_90a alone.
#pragma once

#include <cuda.h>

#include "cuda/kernels/common/ptx.cuh"

namespace fl::ptx {

// ---------------------------------------------------------------- bulk copies, global to shared (sm_90)
// Between plain accesses to any memory and bulk copies.
__device__ __forceinline__ void bulk_copy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
// No .release.cluster: with it every arrival becomes a full memory barrier, and the copies need none.
__device__ __forceinline__ void barrier_arrive_in(uint32_t block, uint32_t barrier) {  // mbarrier.arrive in a cluster
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address_in(block, barrier)) : "memory");
}
__device__ __forceinline__ void bulk_copy(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
// Into the same place of every block of the cluster in `blocks`; each one's own barrier counts the bytes.
__device__ __forceinline__ void bulk_copy_to(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier,
                                             uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
      "%4;" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier), "h"(blocks)
      : "memory");
}

// ---------------------------------------------------------------- stores by tensor map, shared to global (sm_90)
__device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void store_box(const CUtensorMap* map, int col, int row, uint32_t from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(col),
               "r"(row), "r"(from)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// The same, for what shall be the first to leave L2.
__device__ __forceinline__ void store_box_evict_first(const CUtensorMap* map, int col, int row, uint32_t from) {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(map),
      "r"(col), "r"(row), "r"(from), "l"(policy)
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wait_boxes_read() {  // all but the latest N have left shared memory
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// ---------------------------------------------------------------- products of a warpgroup (sm_90a)
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT = 0>  // groups that may be under way
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Where an operand lies, in the 128-byte swizzle: `leading` bytes between 64-column parts, `stride` between groups of
// eight rows.
__device__ __forceinline__ uint64_t swizzled_tile(uint32_t address, uint32_t leading, uint32_t stride) {
  return uint64_t{(address & 0x3FFFF) >> 4} | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 |
         uint64_t{1} << 62;
}
// Without a swizzle, columns next to each other: eight rows of eight columns are 128 bytes in a row, `leading` from
// there to the next eight rows, and `stride` to the next eight columns.
__device__ __forceinline__ uint64_t plain_tile(uint32_t address, uint32_t leading, uint32_t stride) {
  return swizzled_tile(address, leading, stride) & ~(uint64_t{1} << 62);
}

#define FL_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define FL_D16(i) FL_D4(i), FL_D4(i + 4), FL_D4(i + 8), FL_D4(i + 12)
#define FL_32                                                                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define FL_48 FL_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define FL_64 FL_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// d (+)= A[64,16] B[16,N], fp16 or bf16 to float32. A is stored with k contiguous, B with its columns, or with k too
// (B_ALONG_K). `keep` 0 drops the old d. `SUMS` are the numbers of what d has, A to ORDER those of what follows.
#define FL_WGMMA(TYPE, N, SUMS, A, B, KEEP, ORDER, ...)                                                     \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #KEEP                                               \
               ", 0;\n\t"                                                                                   \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" SUMS "}, %" #A ", %" #B \
               ", p, 1, 1, 0, %" #ORDER ";\n\t}"                                                            \
               : __VA_ARGS__                                                                                \
               : "l"(a), "l"(b), "r"(keep), "n"(B_ALONG_K ? 0 : 1))

template <bool BF16, bool B_ALONG_K = false>
__device__ __forceinline__ void wgmma(float (&d)[32], uint64_t a, uint64_t b, int keep) {
  if constexpr (BF16) FL_WGMMA("bf16", 64, FL_32, 32, 33, 34, 35, FL_D16(0), FL_D16(16));
  else FL_WGMMA("f16", 64, FL_32, 32, 33, 34, 35, FL_D16(0), FL_D16(16));
}
template <bool BF16, bool B_ALONG_K = false>
__device__ __forceinline__ void wgmma(float (&d)[48], uint64_t a, uint64_t b, int keep) {
  if constexpr (BF16) FL_WGMMA("bf16", 96, FL_48, 48, 49, 50, 51, FL_D16(0), FL_D16(16), FL_D16(32));
  else FL_WGMMA("f16", 96, FL_48, 48, 49, 50, 51, FL_D16(0), FL_D16(16), FL_D16(32));
}
template <bool BF16, bool B_ALONG_K = false>
__device__ __forceinline__ void wgmma(float (&d)[64], uint64_t a, uint64_t b, int keep) {
  if constexpr (BF16) FL_WGMMA("bf16", 128, FL_64, 64, 65, 66, 67, FL_D16(0), FL_D16(16), FL_D16(32), FL_D16(48));
  else FL_WGMMA("f16", 128, FL_64, 64, 65, 66, 67, FL_D16(0), FL_D16(16), FL_D16(32), FL_D16(48));
}

#undef FL_WGMMA
#undef FL_64
#undef FL_48
#undef FL_32
#undef FL_D16
#undef FL_D4

// The compiler does not know that a product writes d after its instruction: nothing may read d before this.
template <int R>
__device__ __forceinline__ void written(float (&d)[R]) {
#pragma unroll
  for (int i = 0; i < R; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

}  // namespace fl::ptx
