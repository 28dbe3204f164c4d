// The persistent kernels of the strict products (pipelined.cuh), whose sums are one chain in ascending k, with
// precision="reproducible": after each block of k the sums go to C and begin anew.
//
// C is what the sums of blocks are added to, in place: all tiles that are worked on at a time stay in L2 (17 MB at
// 128x256 on 132 multiprocessors), and a block of k takes some 80,000 cycles, in which each thread reads and writes 128
// floats. While one of a scheduler's two multiplying warps waits for them, the other one multiplies. Loads are begun
// some at a time: one by one, each would wait for the store before it, since the compiler cannot tell that they are of
// other elements.
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

template <class T, class Math>
__device__ __forceinline__ void multiply_blocks(const SgemmArgs& p, const PipelinedPlan& plan, Math& math,
                                                unsigned number) {
  constexpr int STEPS = static_cast<int>(REPRODUCIBLE_BLOCK) / T::BK;
  int first = 0;
  do {  // an empty sum too
    math.zero();
    math.multiply(plan, {first, min(STEPS, plan.steps - first)}, 0);
    unsigned again = number;
    asm volatile("" : "+r"(again));  // the tile's place is worked out here, not kept through the main loop
    const Tile tile = tile_of<T>(plan, again);
    const Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
    const BlockUpdate update(p, first == 0);
    if constexpr (T::C16) add_aligned<T>(p, math, at, update);
    else add_staged<T>(p, math, at, update);
    first += STEPS;
  } while (first < plan.steps);
}

template <PipelinedTile TILE>
void reproducible_pipelined(const SgemmArgs& p, const Context& ctx) {
  strict_pipelined<TILE>(with_empty_sum(p), ctx);
}

}  // namespace fl
