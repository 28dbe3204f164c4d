// The persistent kernels of the strict products (pipelined.cuh), whose sums are one chain in ascending k, with
// precision="reproducible": after each block of k the sums go to C and begin anew.
//
// On Hopper a block's tile of C stays in shared memory from its first block of k to its last: each thread keeps the
// fours that it computes, so that nobody waits for anybody, and C is read once, if at all, and written once. What that
// leaves of shared memory has room for two stages of 32 k where TMA fills them, and else for three of 16. Two are
// enough, and shorter steps are not free: some 60 instructions of a warp come on top of the 16 x 128 FMAs of one.
// Where there is less shared memory, C is in L2 meanwhile: 8192 x 8192 x 1024 took 2835 us instead of 2749, as a block
// of k takes some 80,000 cycles, in which each thread reads and writes 128 floats.
//
// Where a tile is small, because there are few of them, the groups of warps that share its k (sliced-K) take a block of
// k each and add up in turn. Each has stages and copying warps of its own: with one queue of copies for all, groups
// waited for data that others had not asked for yet, and 1024 x 1024 x 4096 took 180 us instead of 170.
#pragma once

#include "cuda/kernels/sgemm_reproducible/order.cuh"
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

// What a thread keeps of C from one block of k to the next: fours in shared memory that nobody else accesses, but for
// the threads of other groups which have the same outputs.
template <class T>
struct KeptC {
  uint32_t memory;
  bool from, to;  // whether the results of the last block are there, and those of this one are to go there

  __device__ __forceinline__ KeptC(uint32_t shared, bool is_kept, bool is_to_be_kept)
      : memory(shared + T::KEPT_C + ptx::thread_index() % T::GROUP_THREADS * 16),
        from(T::KEEPS_C && is_kept),
        to(T::KEEPS_C && is_to_be_kept) {}
  __device__ __forceinline__ void load4(float* old, int q) const { unpack(old, ptx::load4(place(q))); }
  __device__ __forceinline__ void store4(const float* c, int q) const {
    ptx::store4(place(q), {c[0], c[1], c[2], c[3]});
  }

 private:
  __device__ __forceinline__ uint32_t place(int q) const { return memory + q * T::GROUP_THREADS * 16; }
};

// A thread's fours of C where rows are aligned for that.
template <class T>
struct AlignedRows {
  static constexpr int AT_A_TIME = T::TN > 8 ? T::TN / 4 : T::TN;  // as registers allow
  const SgemmArgs& p;
  const Corner& at;
  int row, col;
  float* c;

  __device__ __forceinline__ AlignedRows(const SgemmArgs& args, const Corner& corner) : p(args), at(corner) {
    const int t = static_cast<int>(ptx::thread_index()) % T::GROUP_THREADS;
    const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
    row = place.row, col = place.col;
    c = at.c + row * p.c.rs + col;
  }
  __device__ __forceinline__ void load4(float* old, int q) const {
    move4(old, c + down(q) * p.c.rs + across(q), exist(q));
  }
  __device__ __forceinline__ void store4(const float* values, int q) const {
    move4(c + down(q) * p.c.rs + across(q), values, exist(q));
  }

 private:
  static __device__ __forceinline__ int down(int q) {
    const int i = q / (T::TN / 4);
    return i / 4 * T::LANE_ROWS * 4 + i % 4;
  }
  static __device__ __forceinline__ int across(int q) { return q % (T::TN / 4) * 4 * T::LANE_COLS; }
  __device__ __forceinline__ int exist(int q) const {
    return T::TMA ? 4 : row + down(q) < at.rows ? at.cols - col - across(q) : 0;
  }
};

// The same where rows begin anywhere (TurnedFour).
template <class T>
struct TurnedRows {
  static constexpr int AT_A_TIME = 2;
  const SgemmArgs& p;
  const Corner& at;

  __device__ __forceinline__ void load4(float* old, int q) const {
    each(q, [&](int i, const float* c) { old[i] = *c; });
    TurnedFour::turn(old);
  }
  __device__ __forceinline__ void store4(const float* values, int q) const {
    float x[4] = {values[0], values[1], values[2], values[3]};
    TurnedFour::turn(x);
    each(q, [&](int i, float* c) { *c = x[i]; });
  }

 private:
  template <class Use>
  __device__ __forceinline__ void each(int q, Use use) const {
    const int t = static_cast<int>(ptx::thread_index());
    const QuadPlace<T> place(t % T::GROUP_THREADS / 32, Lane(0), q);
    TurnedFour(place.row, 4, place.col, t % 32).each(at, p.c.rs, 4, use);
  }
};

// Between the first block of k and the last C is kept, and nobody asks where it lies.
struct NoRows {
  static constexpr int AT_A_TIME = 4;
  __device__ __forceinline__ void load4(float*, int) const {}
  __device__ __forceinline__ void store4(const float*, int) const {}
};

// Adds a block's sums to what there is of C. Loads are begun some at a time: one by one, each would wait for the store
// before it, since the compiler cannot tell that they are of other elements. from_kept, to_kept: whether what there is
// is kept, and whether the result is; as types where there is code for each case, without branches.
template <class T, class Rows, class From, class To>
__device__ __forceinline__ void add_block(const WarpMath<T>& math, const BlockUpdate& update, const KeptC<T>& kept,
                                          const Rows& rows, From from_kept, To to_kept) {
#pragma unroll
  for (int first = 0; first < T::THREAD_QUADS; first += Rows::AT_A_TIME) {
    alignas(16) float c[Rows::AT_A_TIME][4];
#pragma unroll
    for (int i = 0; i < Rows::AT_A_TIME; ++i) {
      if (from_kept) kept.load4(c[i], first + i);
      else if (update.reads) rows.load4(c[i], first + i);
    }
#pragma unroll
    for (int i = 0; i < Rows::AT_A_TIME; ++i) {
      update.apply4<std::is_same_v<From, std::true_type>>(math.four(first + i), c[i]);
      if (to_kept) kept.store4(c[i], first + i);
      else rows.store4(c[i], first + i);
    }
  }
}

// What is done with the sum of a block of k. A tile's place is worked out only here, and only where it is needed.
template <class T>
__device__ __forceinline__ void update_c(const SgemmArgs& p, const PipelinedPlan& plan, const WarpMath<T>& math,
                                         const WorkUnit& unit, const BlockUpdate& update, const KeptC<T>& kept) {
  constexpr std::true_type yes;
  constexpr std::false_type no;
  if (kept.from && kept.to) return add_block<T>(math, update, kept, NoRows{}, yes, yes);
  unsigned again = unit.tile;
  asm volatile("" : "+r"(again));  // not kept through the main loop
  const Tile tile = tile_of<T>(plan, again);
  const Corner at = corner(p, tile.batch, tile.row * T::BM, tile.col * T::BN);
  using Rows = std::conditional_t<T::C16, AlignedRows<T>, TurnedRows<T>>;
  const Rows rows{p, at};
  if (!T::TMA) add_block<T>(math, update, kept, rows, kept.from, kept.to);  // long enough, with all edges
  else if (kept.from) add_block<T>(math, update, kept, rows, yes, no);
  else if (kept.to) add_block<T>(math, update, kept, rows, no, yes);
  else add_block<T>(math, update, kept, rows, no, no);
}

// A block of k for each group of warps, and the next one when all have one. They add their sums in turn: a warp waits
// for the one of the group before it that has the same outputs, and for no other.
template <class T, class Math>
__device__ __forceinline__ void multiply_blocks_by_groups(const SgemmArgs& p, const PipelinedPlan& plan, Math& math,
                                                          const WorkUnit& unit, int group) {
  constexpr int WARPS = T::GROUP_THREADS / 32;
  const int blocks = max((plan.steps + T::BLOCK_STEPS - 1) / T::BLOCK_STEPS, 1);  // an empty sum is the first group's
#pragma unroll 1
  for (int block = group; block < blocks; block += T::K_GROUPS) {
    const int first = block * T::BLOCK_STEPS;
    math.zero();
    math.multiply(plan, {first, min(T::BLOCK_STEPS, plan.steps - first)}, 0);
    const int warp = static_cast<int>(ptx::thread_index()) % T::GROUP_THREADS / 32;
    const auto turn = [&](int done) {
      return math.pipeline.shared + T::TURNS + (done % T::K_GROUPS * WARPS + warp) * 8;
    };
    if (block > 0) ptx::barrier_wait(turn(block - 1), (block - 1) / T::K_GROUPS & 1);
    const bool last = block + 1 == blocks;
    update_c<T>(p, plan, math, unit, BlockUpdate(p, block == 0), KeptC<T>(math.pipeline.shared, block > 0, !last));
    if (!last) ptx::barrier_arrive(turn(block));
  }
}

// Stream-K cuts tiles at any step: the sum of a block of k that is not finished goes on where it is saved, and what
// lies before it is in C by then.
template <class T, class Math>
__device__ __forceinline__ void multiply_blocks(const SgemmArgs& p, const PipelinedPlan& plan, Math& math,
                                                const WorkUnit& unit, int group) {
  if constexpr (T::K_GROUPS > 1) return multiply_blocks_by_groups<T>(p, plan, math, unit, group);
  constexpr int STEPS = T::BLOCK_STEPS;
  const int end = unit.steps.first + unit.steps.count;
  int first = unit.steps.first;
  do {  // an empty sum too
    const int block_end = min((first / STEPS + 1) * STEPS, plan.steps), last = min(block_end, end);
    if (T::STREAM_K && unit.upper && first == unit.steps.first) StreamKSums<T>::load(plan, math);
    else if (first % STEPS == 0) math.zero();
    math.multiply(plan, {first, last - first}, 0);
    first = last;
    if (T::STREAM_K && last < block_end) return StreamKSums<T>::save(plan, math);
    const KeptC<T> kept(math.pipeline.shared, (block_end - 1) / STEPS * STEPS > unit.steps.first,
                        block_end < end && min(block_end + STEPS, plan.steps) <= end);
    update_c<T>(p, plan, math, unit, BlockUpdate(p, first <= STEPS), kept);
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
