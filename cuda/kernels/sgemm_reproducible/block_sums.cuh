// The persistent kernels of the strict products (pipelined.cuh), whose sums are one chain in ascending k, with
// precision="reproducible": after each block of k the sums go to C and begin anew.
//
// C is what the sums of blocks are added to, in place: all tiles that are worked on at a time stay in L2 (17 MB at
// 128x256 on 132 multiprocessors), and a block of k takes some 80,000 cycles, in which each thread reads and writes 128
// floats. While one of a scheduler's two multiplying warps waits for them, the other one multiplies: HEAD_START steps
// lie between them, or both would wait at the same time: 688 us for 731 at 4096 and k = 1024. Where tiles are shared
// out (stream-K) it gained nothing. Loads are begun some at a time: one by one, each would wait for the store before
// it, since the compiler cannot tell that they are of other elements.
#pragma once

#include "cuda/kernels/sgemm_reproducible/order.cuh"
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

// Sums in registers to rows of C whose fours are aligned.
template <class T>
__device__ __forceinline__ void add_aligned(const SgemmArgs& p, const WarpMath<T>& math, const Corner& at,
                                            const BlockUpdate& update) {
  constexpr int ROWS = T::TN > 8 ? (T::HOPPER ? 2 : 1) : 4;  // at a time, as registers allow
  const int t = static_cast<int>(thread_again());
  const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
  float* const c = at.c + place.row * p.c.rs + place.col;
#pragma unroll
  for (int i = 0; i < T::TM; i += ROWS) {
    const int down = i / 4 * T::LANE_ROWS * 4 + i % 4;
    alignas(16) float old[ROWS][T::TN];
    auto each = [&](auto use) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        float* const row = c + (down + r) * p.c.rs;
        const int exist = T::TMA ? T::BN : place.row + down + r < at.rows ? at.cols - place.col : 0;
#pragma unroll
        for (int j = 0; j < T::TN; j += 4) use(row + T::LANE_COLS * j, r, j, T::TMA ? 4 : exist - T::LANE_COLS * j);
      }
    };
    each([&](float* four, int r, int j, int exist) { update.load4(&old[r][j], four, exist); });
    each([&](float* four, int r, int j, int exist) { update.store4(four, &math.acc[i + r][j], &old[r][j], exist); });
  }
}

// The same where rows begin anywhere, by way of the warp's staging memory (WarpStaging).
template <class T>
__device__ __forceinline__ void add_staged(const SgemmArgs& p, const WarpMath<T>& math, const Corner& at,
                                           const BlockUpdate& update) {
  constexpr int QUADS = T::HOPPER ? 4 : 2, PITCH = WarpStaging::PITCH;  // at a time
  const int t = static_cast<int>(thread_again()), lane_id = t % 32;
  const Lane lane(lane_id);
  const uint32_t memory = warp_staging<T>(math.pipeline.shared, t / 32).memory;
#pragma unroll
  for (int first = 0; first < T::THREAD_QUADS; first += QUADS) {
    float old[QUADS][4];
    auto each = [&](int q, auto use) {
      const QuadPlace<T> place(t / 32, Lane(0), first + q);
      const int across = place.col + lane_id % 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = lane_id / 16 + 2 * i, down = place.row + r * 4;
        if (down < at.rows && across < at.cols) use(at.c + down * p.c.rs + across, r, old[q][i]);
      }
    };
    if (update.reads)
#pragma unroll
      for (int q = 0; q < QUADS; ++q) each(q, [&](const float* c, int, float& value) { value = *c; });
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      ptx::store4(memory + (lane.row * PITCH + lane.col * 4) * 4, math.quad(first + q));
      __syncwarp();
      each(q, [&](float* c, int r, float value) {
        *c = update(ptx::load1(memory + (r * PITCH + lane_id % 16) * 4), value);
      });
      __syncwarp();
    }
  }
}

// How far one of a scheduler's multiplying warps is ahead of the other, in steps.
template <class T>
constexpr int HEAD_START = T::HOPPER && !T::STREAM_K ? T::STAGES / 2 : 0;

// Those of the upper half wait once until those of the lower one have multiplied so many.
template <class T>
__device__ __forceinline__ bool waits_for_head_start() {
  return threadIdx.x >= T::MATH_THREADS / 2;
}
template <class T>
__device__ __forceinline__ void meet_at_head_start() {
  if (waits_for_head_start<T>()) ptx::block_barrier_sync(1, T::MATH_THREADS);
  else ptx::block_barrier_arrive(1, T::MATH_THREADS);
}

// Stream-K cuts tiles at any step: the sum of a block of k that is not finished goes on where it is saved, and what
// lies before it is in C by then.
template <class T, class Math>
__device__ __forceinline__ void multiply_blocks(const SgemmArgs& p, const PipelinedPlan& plan, Math& math,
                                                const WorkUnit& unit, bool& apart) {
  constexpr int STEPS = static_cast<int>(REPRODUCIBLE_BLOCK) / T::BK;
  const int end = unit.steps.first + unit.steps.count;
  int first = unit.steps.first;
  if (HEAD_START<T> == 0) apart = true;
  if (!apart && waits_for_head_start<T>()) {
    meet_at_head_start<T>();
    apart = true;
  }
  do {  // an empty sum too
    const int block_end = min((first / STEPS + 1) * STEPS, plan.steps), last = min(block_end, end);
    if (T::STREAM_K && unit.upper && first == unit.steps.first) StreamKSums<T>::load(plan, math);
    else if (first % STEPS == 0) math.zero();
    const int count = apart ? last - first : min(last - first, HEAD_START<T>);
    math.multiply(plan, {first, count}, 0);
    if (!apart) meet_at_head_start<T>();
    apart = true;
    first += count;
    if (first < last) continue;
    if (T::STREAM_K && last < block_end) return StreamKSums<T>::save(plan, math);
    unsigned again = unit.tile;
    asm volatile("" : "+r"(again));  // the tile's place is worked out here, not kept through the main loop
    const Tile tile = tile_of<T>(plan, again);
    const Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
    const BlockUpdate update(p, first <= STEPS);
    if constexpr (T::C16) add_aligned<T>(p, math, at, update);
    else add_staged<T>(p, math, at, update);
  } while (first < end);
  if (T::STREAM_K && unit.lower) {
    math.zero();
    StreamKSums<T>::save(plan, math);
  }
}

template <PipelinedTile TILE>
void reproducible_pipelined(const SgemmArgs& p, const Context& ctx) {
  strict_pipelined<TILE>(with_empty_sum(p), ctx);
}

}  // namespace fl
