// The split pass: every row of A and every column of B, a "line" here, is scaled by a power of two and written as two
// fp16 slices, hi = rn(x) and lo = rn(x - hi), in the order and swizzle that the tensor cores read. So the product needs
// no tensor maps, and whatever layout, alignment or transposition the operands have ends here.
//
// A cluster of eight blocks takes 64 lines; each block an eighth of k, 128 k at a time: 32 numbers per thread. All four
// combinations of operand and layout run the same code; they differ in which 32 numbers a thread holds. It is always the
// 8 of a 16-byte chunk of the slices, times four.
//
// The operand is read once. Up to k = 1024 the first piece is all there is. Beyond that the scale comes from the first
// 1024 k that the cluster reads, with a factor 16 of headroom; the true maximum is known at the end, and 64 lines of which
// one has left the range are read and written again. Two passes instead cost 19 % more at 8192.
//
// The guard (docs/accuracy.md): each block reports for 32 lines in one word how many numbers of the worst line are not
// large, whether there are any so small that the two slices cannot hold them, and NaN or Inf.
#pragma once

#include <cuda_fp16.h>

#include "fp16x2_share.cuh"
#include "ptx_wgmma.cuh"

namespace fl {

// A block's words of the guard, one for each half of its lines. The rest of it counts.
constexpr unsigned GUARD_SMALL = 1u << 31, GUARD_NOT_FINITE = 1u << 30, GUARD_WIDE = 1u << 29;
constexpr unsigned GUARD_COUNT = GUARD_WIDE - 1;
// Scales within 2^+-60 are applied in one step after the product, others in two.
constexpr int NARROW = 60;

struct SplitPlan {
  SplitOperand a, b;
  int64_t k, k_blocks;
  unsigned a_blocks;   // blocks of threads that work on A
  float small, large;  // thresholds on scaled numbers
  unsigned* guard;
};

constexpr int SPLIT_THREADS = 256, SPLIT_PIECE = 128;

struct SplitShared {
  unsigned largest[2][64], large_count[64];
  int exponent[64];
};

// e such that the largest magnitude times 2^e lies in [2^14, 2^15), where 2^e is a float; `doubled` is its bits times 2.
__device__ __forceinline__ int exponent_for(unsigned doubled) {
  if (doubled == 0) return 0;
  const int biased = static_cast<int>(doubled >> 24);
  return min(14 - (biased ? biased - 127 : -119 - __clz(doubled)), 127);
}
__device__ __forceinline__ float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

// The largest over the cluster, for the threads of lines 0 to 63.
template <class Share, int LINES>
__device__ __forceinline__ unsigned largest_of_line(unsigned (&largest)[64], const unsigned (&own)[LINES],
                                                    const Share& at) {
#pragma unroll
  for (int i = 0; i < LINES; ++i) {
    unsigned x = own[i];
#pragma unroll
    for (unsigned bit = 1; bit < 32; bit *= 2)
      if (Share::SHARED & bit) x = max(x, __shfl_xor_sync(0xffffffffu, x, bit));
    if ((at.t & Share::SHARED) == 0) atomicMax(&largest[at.line(i)], x);
  }
  ptx::cluster_arrive();
  ptx::cluster_wait();
  unsigned all = 0;
  if (at.t < 64) {
    const uint32_t address = ptx::shared_address(&largest[at.t]);
#pragma unroll
    for (unsigned block = 0; block < FP16X2_CLUSTER; ++block)
      all = max(all, ptx::load1_cluster(ptx::address_in(block, address)));
  }
  return all;
}

template <bool IS_B, bool K_CONTIGUOUS, bool LONG>
__device__ __forceinline__ void split_strip(const SplitPlan& plan, const SplitOperand& x, unsigned block,
                                            unsigned* guard, SplitShared& shared) {
  using Share = Share32<IS_B, K_CONTIGUOUS>;
  const Share at{threadIdx.x};
  const int64_t strip = block / FP16X2_CLUSTER, line0 = strip * 64, part = ceil_div(plan.k, 8 * 32) * 32;
  const int64_t k0 = block % FP16X2_CLUSTER * part, k_end = min(plan.k, k0 + part);
  const int64_t padded_end = min(plan.k_blocks * 64, k0 + part);
  const int pieces = LONG ? static_cast<int>(ceil_div(part, SPLIT_PIECE)) : 1;
  char* const slices = x.slices + strip * plan.k_blocks * FP16X2_BLOCK_BYTES;

  float v[4][8];
  unsigned own[Share::LINES] = {}, smallest = ~0u;  // of magnitudes' bits times 2; minus 1, so that zero is the largest
  __half2 large_count[4] = {};                      // saturates at 2048: more numbers then count as not large than are
  float scale[Share::LINES];
  auto measure = [&] {
#pragma unroll
    for (int g = 0; g < 4; ++g)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const unsigned doubled = __float_as_uint(v[g][j]) << 1;
        own[IS_B ? j : g] = max(own[IS_B ? j : g], doubled);
        smallest = min(smallest, doubled - 1);
      }
  };
  auto take_scales = [&] {
#pragma unroll
    for (int i = 0; i < Share::LINES; ++i) scale[i] = power_of_two(shared.exponent[at.line(i)]);
  };
  const __half2 large = __float2half2_rn(plan.large);
  auto write = [&](int64_t k_piece) {
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      alignas(16) __half2 hi[4], lo[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float s = v[g][2 * i] * scale[IS_B ? 2 * i : g], t = v[g][2 * i + 1] * scale[IS_B ? 2 * i + 1 : g];
        hi[i] = __floats2half2_rn(s, t);
        const float2 rounded = __half22float2(hi[i]);
        lo[i] = __floats2half2_rn(s - rounded.x, t - rounded.y);
        large_count[IS_B ? i : g] = __hadd2(large_count[IS_B ? i : g], __hge2(__habs2(hi[i]), large));
      }
      const int64_t k = k_piece + at.k(g);
      if (k >= padded_end) continue;
      char* const to = slices + k / 64 * FP16X2_BLOCK_BYTES + at.place(g, k);
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(hi);
      *reinterpret_cast<uint4*>(to + FP16X2_SLICE_BYTES) = *reinterpret_cast<const uint4*>(lo);
    }
  };
  auto read = [&](int piece) {
    const int64_t from = k0 + piece * SPLIT_PIECE;
    if (x.by16 && line0 + 64 <= x.lines && from + SPLIT_PIECE <= k_end) read_piece<true>(v, x, at, line0, from, k_end);
    else read_piece<false>(v, x, at, line0, from, k_end);
  };

  read(0);
  measure();
  unsigned largest = largest_of_line(shared.largest[0], own, at);
  int e = exponent_for(largest) - (LONG ? 4 : 0);
  if (at.t < 64) shared.exponent[at.t] = e;
  __syncthreads();
  take_scales();
  write(k0);
  for (int piece = 1; piece < pieces; ++piece) {
    read(piece);
    measure();
    write(k0 + piece * SPLIT_PIECE);
  }
  if constexpr (LONG) {
    largest = largest_of_line(shared.largest[1], own, at);
    const int exact = exponent_for(largest);
    if (__syncthreads_or(at.t < 64 && largest != 0 && (exact < e || exact > e + 4))) {
      if (at.t < 64) shared.exponent[at.t] = e = exact;
      __syncthreads();
      take_scales();
      for (__half2& count : large_count) count = __half2{};
      for (int piece = 0; piece < pieces; ++piece) {
        read(piece);
        write(k0 + piece * SPLIT_PIECE);
      }
    }
  }
  ptx::cluster_arrive();  // nobody leaves while others read its maxima

#pragma unroll
  for (int i = 0; i < Share::LINES; ++i) {
    const __half2 pair = large_count[IS_B ? i / 2 : i];
    int count =
        static_cast<int>(IS_B ? __half2float(i % 2 ? pair.y : pair.x) : __half2float(pair.x) + __half2float(pair.y));
#pragma unroll
    for (unsigned bit = 1; bit < 32; bit *= 2)
      if (Share::SHARED & bit) count += __shfl_xor_sync(0xffffffffu, count, bit);
    if ((at.t & Share::SHARED) == 0) atomicAdd(&shared.large_count[at.line(i)], static_cast<unsigned>(count));
  }
  unsigned flags = 0;
  bool any_small = false;
#pragma unroll
  for (int i = 0; i < Share::LINES; ++i)
    any_small |= smallest != ~0u && __uint_as_float((smallest + 1) >> 1) * scale[i] < plan.small;
  if (__syncthreads_or(any_small)) flags = GUARD_SMALL;
  if (at.t < 64) {
    unsigned not_large = 0;
    if (largest != 0 && line0 + at.t < x.lines) {
      if (largest >= 0xff000000u) flags |= GUARD_NOT_FINITE;
      if (abs(e) > NARROW) flags |= GUARD_WIDE;
      if (k_end > k0) not_large = static_cast<unsigned>(k_end - k0) - shared.large_count[at.t];
    }
    not_large = __reduce_max_sync(0xffffffffu, not_large);
    flags = __reduce_or_sync(0xffffffffu, flags);
    const unsigned rank = block % FP16X2_CLUSTER;
    if (at.t % 32 == 0) guard[(strip * 2 + at.t / 32) * FP16X2_CLUSTER + rank] = flags | min(not_large, GUARD_COUNT);
    if (rank == 0) x.exponents[line0 + at.t] = e;
  }
  ptx::cluster_wait();
}

// LONG: k > 1024. Short lines leave registers for four blocks on a multiprocessor.
template <bool LONG>
__global__ void __launch_bounds__(SPLIT_THREADS, LONG ? 3 : 4)
    fp16x2_split_kernel(const __grid_constant__ SplitPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ SplitShared shared;
  if (threadIdx.x < 64)
    shared.largest[0][threadIdx.x] = shared.largest[1][threadIdx.x] = shared.large_count[threadIdx.x] = 0;
  ptx::grid_release();
  ptx::grid_wait();
  __syncthreads();
  if (blockIdx.x < plan.a_blocks) {
    if (plan.a.k_contiguous) split_strip<false, true, LONG>(plan, plan.a, blockIdx.x, plan.guard, shared);
    else split_strip<false, false, LONG>(plan, plan.a, blockIdx.x, plan.guard, shared);
  } else {
    const unsigned block = blockIdx.x - plan.a_blocks;
    unsigned* const guard = plan.guard + 2 * plan.a_blocks;
    if (plan.b.k_contiguous) split_strip<true, true, LONG>(plan, plan.b, block, guard, shared);
    else split_strip<true, false, LONG>(plan, plan.b, block, guard, shared);
  }
#endif
}

}  // namespace fl
