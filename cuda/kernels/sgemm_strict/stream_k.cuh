// Stream-K: how a persistent kernel of pipelined.cuh shares out the tiles of a last wave that is not full.
//
// All but the last whole wave go to the blocks tile by tile. What is left, 1.88 tiles to a block, is one long row of
// steps along k, of which every block takes an equal piece. A border between two pieces goes through a tile: its lower
// k belong to the end of one block's piece, its upper k to the beginning of the next one's. Every block starts with the
// end of its piece and saves these sums; it comes to the beginning last, when the block before it has long saved
// theirs, and goes on from there. So nobody waits, all end at the same time, and every output is still one chain of
// FMAs in ascending k, bit for bit: the schedule of McNaughton, Management Science 6 (1959).
//
// A block waits for the one before it alone, which the device has started earlier. With a piece shorter than a tile the
// two parts of a tile would overlap; so there is at least one whole wave.
#pragma once

#include "cuda/kernels/sgemm_strict/mainloop.cuh"

namespace fl {

// What a block may have to do next: a tile, or only the lower or upper k of one.
struct WorkUnit {
  unsigned tile;
  Steps steps;
  bool exists, lower, upper;
};

// The numbers of a block's units of work. With stream-K its shares of the tiles behind the whole waves are the first
// and the last two.
template <class T>
__device__ __forceinline__ unsigned first_unit() {
  return T::STREAM_K ? 0 : blockIdx.x / T::CLUSTER_K;
}
template <class T>
__device__ __forceinline__ unsigned end_of_units(const PipelinedPlan& plan) {
  return T::STREAM_K ? plan.stream_k.waves + 3 : plan.tiles;
}
template <class T>
__device__ __forceinline__ unsigned to_next_unit() {
  return T::STREAM_K ? 1 : gridDim.x / T::CLUSTER_K;
}

template <class T>
__device__ __forceinline__ WorkUnit work_unit(const PipelinedPlan& plan, int rank, unsigned number) {
  if constexpr (!T::STREAM_K) return {number, Steps::of<T>(plan, rank, number), true};
  unsigned block = blockIdx.x;
  asm volatile("" : "+r"(block));  // what follows from it is worked out unit by unit, not kept in registers
  const StreamK& stream_k = plan.stream_k;
  if (number - 1 < stream_k.waves) return {block + (number - 1) * gridDim.x, {0, plan.steps}, true};
  const unsigned all = static_cast<unsigned>(plan.steps);
  const auto first = static_cast<unsigned>(uint64_t{block} * stream_k.steps / gridDim.x);
  const auto last = static_cast<unsigned>((uint64_t{block} + 1) * stream_k.steps / gridDim.x);
  if (number == 0) {
    const unsigned lower = last % all;
    return {stream_k.tiles + last / all, {0, static_cast<int>(lower)}, lower > 0, true, false};
  }
  const unsigned tile = first / all, lower = first % all;
  if (number == stream_k.waves + 1) {
    const unsigned whole = tile + (lower > 0);
    return {stream_k.tiles + whole, {0, plan.steps}, (whole + 1) * all <= last};
  }
  return {stream_k.tiles + tile, {static_cast<int>(lower), static_cast<int>(all - lower)}, lower > 0, false, true};
}

// The sums of a block's lower part of a tile, on their way to the block behind it: thread by thread.
template <class T>
struct StreamKSums {
  static constexpr int QUADS = T::THREAD_QUADS, AT_A_TIME = 8;
  static_assert(QUADS % 4 == 0);

  static __device__ __forceinline__ float4* place(const StreamK& stream_k, unsigned block, unsigned t) {
    return stream_k.sums + std::size_t{block} * T::QUADS + t;
  }
  // As in sum_and_store, the products with one free the sums from neighbouring registers.
  static __device__ __forceinline__ void save(const PipelinedPlan& plan, const WarpMath<T>& math) {
    const unsigned t = ptx::thread_index();
    float4* to = place(plan.stream_k, blockIdx.x, t);
#pragma unroll
    for (int q = 0; q < QUADS; ++q) __stcg(to + q * T::MATH_THREADS, plan.one * math.quad(q));
    __syncwarp();
    if (t % 32 == 0) ptx::store_release(plan.stream_k.saved + (blockIdx.x * T::MATH_THREADS + t) / 32, 1);
  }
  static __device__ __forceinline__ void load(const PipelinedPlan& plan, WarpMath<T>& math) {
    const unsigned t = ptx::thread_index(), before = blockIdx.x - 1;
    while (ptx::load_acquire(plan.stream_k.saved + (before * T::MATH_THREADS + t) / 32) == 0) {
    }
    const float4* from = place(plan.stream_k, before, t);
#pragma unroll
    for (int q = 0; q < QUADS; q += AT_A_TIME) {
      float4 sums[AT_A_TIME];
#pragma unroll
      for (int i = 0; i < AT_A_TIME && q + i < QUADS; ++i) sums[i] = __ldcg(from + (q + i) * T::MATH_THREADS);
#pragma unroll
      for (int i = 0; i < AT_A_TIME && q + i < QUADS; ++i) math.set_quad(q + i, plan.one * sums[i]);
    }
  }
};

// Clears the flags before the kernel itself, since what a workspace holds is not known.
void clear_saved(unsigned* saved, unsigned count, const Context& ctx);

// Shares the tiles of `plan` out among `blocks`. False where that does not pay.
template <class T>
bool schedule_stream_k(const SgemmArgs& p, const PipelinedTile& tile, PipelinedPlan& plan, unsigned blocks,
                       const Context& ctx) {
  if (plan.splits > 1 || !stream_k_bytes(p, tile) || !stream_k_pays(p, tile, blocks)) return false;
  StreamK& stream_k = plan.stream_k;
  stream_k.waves = plan.tiles / blocks - 1;
  stream_k.tiles = stream_k.waves * blocks;
  stream_k.steps = (plan.tiles - stream_k.tiles) * static_cast<unsigned>(plan.steps);
  stream_k.sums = static_cast<float4*>(ctx.workspace);
  stream_k.saved = reinterpret_cast<unsigned*>(stream_k.sums + std::size_t{blocks} * T::QUADS);
  clear_saved(stream_k.saved, blocks * T::MATH_THREADS / 32, ctx);
  return true;
}

}  // namespace fl
