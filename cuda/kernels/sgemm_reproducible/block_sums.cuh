// The persistent kernels of the strict products (pipelined.cuh), whose sums are one chain in ascending k, with
// precision="reproducible": after each block of k the sums go to C and begin anew.
//
// On Hopper a block's tile of C stays in shared memory from its first block of k to its last: each thread keeps the
// fours that it computes, so that nobody waits for anybody, and C is read once, if at all, and written once. What that
// leaves of shared memory has room for three stages of 16 k, which are enough. Where there is less shared memory, C is
// in L2 meanwhile: 8192 x 8192 x 1024 took 2835 us for 2749, as a block of k takes some 80,000 cycles, in which each
// thread reads and writes 128 floats. Loads from there are begun some at a time: one by one, each would wait for the
// store before it, since the compiler cannot tell that they are of other elements.
#pragma once

#include "cuda/kernels/sgemm_reproducible/order.cuh"
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

// What a thread keeps of C from one block of k to the next: fours in shared memory that nobody else accesses.
template <class T>
struct KeptC {
  uint32_t memory;
  bool from, to;  // whether the results of the last block are there, and those of this one are to go there

  __device__ __forceinline__ KeptC(uint32_t shared, bool is_kept, bool is_to_be_kept)
      : memory(shared + T::KEPT_C + thread_again() * 16),
        from(T::KEEPS_C && is_kept),
        to(T::KEEPS_C && is_to_be_kept) {}
  __device__ __forceinline__ void load4(float* old, int q) const { unpack(old, ptx::load4(place(q))); }
  __device__ __forceinline__ void store4(const float* c, int q) const {
    ptx::store4(place(q), {c[0], c[1], c[2], c[3]});
  }

 private:
  __device__ __forceinline__ uint32_t place(int q) const { return memory + q * T::MATH_THREADS * 16; }
};

// Sums in registers to rows of C whose fours are aligned.
template <class T>
__device__ __forceinline__ void add_aligned(const SgemmArgs& p, const WarpMath<T>& math, const Corner& at,
                                            const BlockUpdate& update, const KeptC<T>& kept) {
  constexpr int ROWS = T::TN > 8 ? 1 : 4;  // at a time, as registers allow
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
    each([&](float* four, int r, int j, int exist) {
      if (kept.from) kept.load4(&old[r][j], ((i + r) * T::TN + j) / 4);
      else update.load4(&old[r][j], four, exist);
    });
    each([&](float* four, int r, int j, int exist) {
      update.apply4(&math.acc[i + r][j], &old[r][j]);
      if (kept.to) kept.store4(&old[r][j], ((i + r) * T::TN + j) / 4);
      else move4(four, &old[r][j], exist);
    });
  }
}

// The same where rows begin anywhere, by way of the warp's staging memory (WarpStaging).
template <class T>
__device__ __forceinline__ void add_staged(const SgemmArgs& p, const WarpMath<T>& math, const Corner& at,
                                           const BlockUpdate& update, const KeptC<T>& kept) {
  constexpr int QUADS = 2, PITCH = WarpStaging::PITCH;  // at a time
  const int t = static_cast<int>(thread_again()), lane_id = t % 32;
  const Lane lane(lane_id);
  const uint32_t memory = warp_staging<T>(math.pipeline.shared, t / 32).memory;
#pragma unroll
  for (int first = 0; first < T::THREAD_QUADS; first += QUADS) {
    alignas(16) float old[QUADS][4];
    auto each = [&](int q, auto use) {
      const QuadPlace<T> place(t / 32, Lane(0), first + q);
      const int across = place.col + lane_id % 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = lane_id / 16 + 2 * i, down = place.row + r * 4;
        if (down < at.rows && across < at.cols) use(at.c + down * p.c.rs + across, r, old[q][i]);
      }
    };
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      if (kept.from) kept.load4(old[q], first + q);
      else if (update.reads) each(q, [&](const float* c, int, float& value) { value = *c; });
    }
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
      ptx::store4(memory + (lane.row * PITCH + lane.col * 4) * 4, math.quad(first + q));
      __syncwarp();
      each(q, [&](float* c, int r, float& value) {
        value = update(ptx::load1(memory + (r * PITCH + lane_id % 16) * 4), value);
        if (!kept.to) *c = value;
      });
      if (kept.to) kept.store4(old[q], first + q);
      __syncwarp();
    }
  }
}

// Stream-K cuts tiles at any step: the sum of a block of k that is not finished goes on where it is saved, and what
// lies before it is in C by then.
template <class T, class Math>
__device__ __forceinline__ void multiply_blocks(const SgemmArgs& p, const PipelinedPlan& plan, Math& math,
                                                const WorkUnit& unit) {
  constexpr int STEPS = static_cast<int>(REPRODUCIBLE_BLOCK) / T::BK;
  const int end = unit.steps.first + unit.steps.count;
  int first = unit.steps.first;
  do {  // an empty sum too
    const int block_end = min((first / STEPS + 1) * STEPS, plan.steps), last = min(block_end, end);
    if (T::STREAM_K && unit.upper && first == unit.steps.first) StreamKSums<T>::load(plan, math);
    else if (first % STEPS == 0) math.zero();
    math.multiply(plan, {first, last - first}, 0);
    first = last;
    if (T::STREAM_K && last < block_end) return StreamKSums<T>::save(plan, math);
    unsigned again = unit.tile;
    asm volatile("" : "+r"(again));  // the tile's place is worked out here, not kept through the main loop
    const Tile tile = tile_of<T>(plan, again);
    const Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
    const BlockUpdate update(p, first <= STEPS);
    const KeptC<T> kept(math.pipeline.shared, (block_end - 1) / STEPS * STEPS > unit.steps.first,
                        block_end < end && min(block_end + STEPS, plan.steps) <= end);
    if constexpr (T::C16) add_aligned<T>(p, math, at, update, kept);
    else add_staged<T>(p, math, at, update, kept);
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
