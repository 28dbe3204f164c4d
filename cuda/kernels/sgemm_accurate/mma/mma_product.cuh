// The product of two operands that the split pass has cut into terms of 16 bits, with instructions that every GPU from
// compute capability 8.0 on has: cp.async, ldmatrix and mma.sync.
//
// A warp holds its columns of B for a stage of 32 or 64 k in registers, all terms, and takes its rows of A sixteen at a
// time. All products of such a strip go into one temporary accumulator, the small ones first because the tensor cores
// truncate, and that is added to the float32 sums. So there is one accumulator of a strip beside the sums, and a
// fragment is read from shared memory once for all products: 128 bytes for an instruction of a warp with 64 x 32, 4 of
// which a multiprocessor begins every 6 cycles at best, where shared memory gives 128 bytes a cycle. Each term is read
// again for what comes next as soon as its last product is issued.
#pragma once

#include "cuda/kernels/sgemm_accurate/mma/mma_stores.cuh"

namespace fl {

template <class T>
__device__ __forceinline__ void group_barrier() {
  if constexpr (T::K_GROUPS == 1) __syncthreads();
  else asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.x / T::GROUP_THREADS), "n"(T::GROUP_THREADS) : "memory");
}

// Where a lane reads its warp's first columns of B in a stage.
template <class T>
__device__ __forceinline__ uint32_t first_of_b(unsigned warp_col, unsigned lane) {
  const unsigned k = lane % 16, eight = warp_col * T::NT;
  if constexpr (T::STRIPS) return eight / 4 * T::STRIP_BYTES + k * 64 + (((eight % 4 + lane / 16) ^ k / 2 % 4) << 4);
  return eight / 8 * T::BK * 128 + k * 128 + (((eight % 8 + lane / 16) ^ k % 8) << 4);
}

template <class T, bool SPLIT_K>
__device__ __forceinline__ void multiply_tiles(const MmaPlan& plan, MmaProducer<T>& producer, char* memory) {
  const auto& status = reinterpret_cast<const RangeShared*>(memory + T::STATUS)->status;
  const int units = plan.tile_rows * plan.tile_cols * (SPLIT_K ? plan.to.parts : 1);
  const unsigned lane = threadIdx.x % 32, group = threadIdx.x / T::GROUP_THREADS,
                 warp = threadIdx.x % T::GROUP_THREADS / 32, row = warp / T::WARPS_N, col = warp % T::WARPS_N;
  constexpr uint32_t LAST = (T::STAGES - 1) * T::STAGE_BYTES;
  const uint32_t a_at =
      (row * 16 * T::MT + lane % 16) * T::BK * 2 + ((lane / 16 ^ (T::BK == 64 ? lane % 8 : lane / 2 % 4)) << 4);
  const uint32_t b_at = T::S::COUNT * T::A_TERM_BYTES + first_of_b<T>(col, lane);
  const uint32_t shared = ptx::shared_address(memory) + group * T::GROUP_BYTES;
  const uint32_t exponents = ptx::shared_address(memory + T::EXPONENTS);
  uint32_t stage = 0;
  MmaSums<T> sums;
  MmaFragments<T> fragments;
  wait_fills<T, T::STAGES - 1>();
  group_barrier<T>();
  for (int term = 0; term < T::S::COUNT; ++term) {
    fragments.load_a(term, shared + a_at);
    fragments.load_b(term, shared + b_at);
  }
  for (int at = int(blockIdx.x), buffer = 0; at < units; at += int(gridDim.x), buffer ^= 1) {
    const MmaUnit unit = unit_of<SPLIT_K>(plan, at);
#pragma unroll
    for (int i = 0; i < T::MT * T::NT * 4; ++i) sums[i / 4 / T::NT][i / 4 % T::NT][i % 4] = 0.0f;
    for (int left = (TERM_BLOCK / T::BK * unit.count - int(group) + T::K_GROUPS - 1) / T::K_GROUPS; left > 0; --left) {
      if (T::PERSISTENT && left == T::STAGES) {
        const int next = at + int(gridDim.x);
        producer.begin(exponents + (buffer ^ 1) * T::EXPONENT_BYTES, unit_of<SPLIT_K>(plan, next < units ? next : at));
      }
      const uint32_t next = stage == LAST ? 0 : stage + T::STAGE_BYTES;
      if constexpr (!T::ASYNC) producer.fill(shared + (stage == 0 ? LAST : stage - T::STAGE_BYTES));
      const auto next_stage = [&]() __attribute__((always_inline)) {
        wait_fills<T, T::STAGES - 2>();
        group_barrier<T>();
        if constexpr (!T::ASYNC) return;
        else if (T::PERSISTENT || left > T::STAGES) producer.fill(shared + stage);
        else ptx::commit_copies();
      };
      multiply_stage<T>(sums, fragments, shared + stage + a_at, shared + next + a_at, shared + next + b_at, next_stage);
      stage = next;
    }
    const MmaTileOrigin corner = rasterize<T>(plan, unit.tile);
    if constexpr (T::K_GROUPS > 1) return store_groups<T>(plan, sums, corner, memory, status & STATUS_WIDE);
    else if constexpr (SPLIT_K) store_part<T>(plan, sums, corner, unit.part);
    else
      store_vectors<T, MmaVectors<T>::COUNT>(
          plan, corner, reinterpret_cast<const int*>(memory + T::EXPONENTS + buffer * T::EXPONENT_BYTES),
          status & STATUS_WIDE, [](int i) { return i; }, [&](int i) { return MmaVectors<T>::of(sums, i); });
    if constexpr (!T::PERSISTENT) return;
  }
}

template <class T, bool SPLIT_K>
__device__ __forceinline__ void multiply_terms_of(const MmaPlan& plan, char* memory) {
  RangeShared& range = *reinterpret_cast<RangeShared*>(memory + T::STATUS);
  if (threadIdx.x == 0) range = {};
  __syncthreads();
  pdl_wait();
  if (!terms_wanted(plan.check)) {
    if constexpr (T::FALLS_BACK)
      if (plan.fallback.wanted && *plan.check.previous & STATUS_REJECTED) fall_back(plan.fallback, memory);
    return;
  }

  // The first copies take as long as the range check.
  MmaProducer<T> producer(plan);
  producer.begin(ptx::shared_address(memory + T::EXPONENTS), unit_of<SPLIT_K>(plan, int(blockIdx.x)));
  const uint32_t stages = ptx::shared_address(memory + threadIdx.x / T::GROUP_THREADS * T::GROUP_BYTES);
  if constexpr (!T::ASYNC) producer.template fill<true>(stages);
#pragma unroll
  for (int i = 0; i < T::STAGES - (T::ASYNC ? 0 : 1); ++i) producer.fill(stages + i * T::STAGE_BYTES);
  reduce_range_words<0, T::THREADS>(plan.check, range);
  __syncthreads();
  const unsigned status = status_of(plan.check, range);
  if (threadIdx.x == 0) {
    range.status = status;  // for the stores: no register is free to keep it
    if (blockIdx.x == 0) *plan.check.status = status;
  }
  if (!(status & STATUS_REJECTED)) multiply_tiles<T, SPLIT_K>(plan, producer, memory);
  wait_fills<T, 0>();
  if constexpr (T::FALLS_BACK) {
    if (!(status & STATUS_REJECTED) || !plan.fallback.wanted) return;
    __syncthreads();
    fall_back(plan.fallback, memory);
  }
}

template <class T, bool SPLIT_K = false>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS) mma_sync_kernel(const __grid_constant__ MmaPlan plan) {
  extern __shared__ __align__(128) char memory[];  // nothing else is shared: what lies before it may not be aligned
#if __CUDA_ARCH__ >= 800
  multiply_terms_of<T, SPLIT_K>(plan, memory);
#else
  if constexpr (T::ASYNC) not_for_this_target();
  else multiply_terms_of<T, SPLIT_K>(plan, memory);
#endif
}

}  // namespace fl
