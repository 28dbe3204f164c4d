// The way of the sums in simt_ring.cuh from the multiplying warps' registers into C.
#pragma once

#include "cuda/kernels/sgemm_strict/simt_ring_math.cuh"

namespace fl {

// Where quad q of lane `at` in warp (warp_row, warp_col) of a group lies in the tile. A lane's rows and columns come in
// fours.
template <class T>
struct QuadPlace {
  int row, col;
  __device__ __forceinline__ QuadPlace(int warp, Lane at, int q) {
    const int i = q / (T::TN / 4), j = q % (T::TN / 4);
    row = warp / T::WN * T::LANE_ROWS * T::TM + at.row * 4 + i / 4 * T::LANE_ROWS * 4 + i % 4;
    col = warp % T::WN * T::LANE_COLS * T::TN + at.col * 4 + j * T::LANE_COLS * 4;
  }
};

template <class T>
__device__ __forceinline__ WarpStage warp_stage(uint32_t shared, int warp) {
  static_assert(WarpStage::BYTES == T::WARP_STAGE);
  return {shared + T::stages() + warp * WarpStage::BYTES};
}

// Stores the sums from registers. The lane's place is worked out here and now, not kept through the main loop.
template <class T>
__device__ __forceinline__ void store(const SgemmArgs& p, const WarpMath<T>& math, const Corner& at) {
  const int t = static_cast<int>(thread_again());
  if constexpr (T::C16) {
    const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
    float* row = at.c + place.row * p.c.rs + place.col;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
      const bool row_exists = place.row + i / 4 * T::LANE_ROWS * 4 + i % 4 < at.rows;
      const int exist = T::WHOLE ? T::BN : row_exists ? at.cols - place.col : 0;
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        put4(p, row + T::LANE_COLS * j, T::WHOLE ? 4 : exist - T::LANE_COLS * j, math.quad((i * T::TN + j) / 4));
      row += (i % 4 == 3 ? T::LANE_ROWS * 4 - 3 : 1) * p.c.rs;
    }
  } else {
    const WarpStage stage = warp_stage<T>(math.ring.shared, t / 32);
#pragma unroll
    for (int q = 0; q < T::thread_quads(); ++q) {
      const QuadPlace<T> place(t / 32, Lane(0), q);
      stage.put(p, at, place.row, 4, place.col, t % 32, math.quad(q));
    }
  }
}

// Adds the groups' parts in shared memory, then the blocks' in their inboxes, and stores. The quads of a lane's place
// in a group go to the groups in turn; several sums of a thread are under way at a time, and each place in C follows
// from the thread's first one. One by one, with the place worked out anew, 96 x 192 took 3 % of its time for this.
template <class T>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const RingPlan& plan, const WarpMath<T>& math,
                                              const Corner& at, int rank, int t) {
  constexpr int GT = T::group_threads(), QUADS = T::quads(), MATH = T::math_threads();
  constexpr int SHARE = T::thread_quads() / T::SPLIT, AT_A_TIME = T::thread_quads() / T::KG % 3 == 0 ? 3 : 4;
  const uint32_t parts = math.ring.shared;
  const ClusterSum<T::SPLIT, QUADS> cluster{parts + T::inbox(), rank};
  const WarpStage stage = warp_stage<T>(parts, t / 32);
  const int lane = t % GT, turn = t / GT;
  ptx::named_barrier<1, MATH>();  // all groups are done with the ring
  // A 16-byte store wants its four sums in neighbouring registers. Bound to that through the main loop, every sum would
  // share a register bank with its element of B: the products with one free them.
#pragma unroll
  for (int q = 0; q < T::thread_quads(); ++q)
    ptx::store4(parts + (T::group_of(t) * QUADS + q * GT + lane) * 16, plan.one * math.quad(q));
  ptx::named_barrier<1, MATH>();
  const bool by16 = T::WHOLE || plan.c_by16;
  const QuadPlace<T> origin(lane / 32, lane_of<T>(by16 ? t % 32 : 0), 0);
  float* const c = at.c + origin.row * p.c.rs + origin.col;
  auto put = [&](int q, float4 sum) {
    const int i = q / (T::TN / 4), down = i / 4 * T::LANE_ROWS * 4 + i % 4;
    const int across = (q - i * (T::TN / 4)) * T::LANE_COLS * 4;
    if (!by16) return stage.put(p, at, origin.row + down, 4, origin.col + across, t % 32, sum);
    const int exist = origin.row + down < at.rows ? at.cols - origin.col - across : 0;
    put4(p, c + down * p.c.rs + across, T::WHOLE ? 4 : exist, sum);
  };
  auto sum_parts = [&](int q) {
    const uint32_t from = parts + (q * GT + lane) * 16;
    float4 sum = ptx::load4(from);
#pragma unroll
    for (int g = 1; g < T::KG; ++g) sum = add(sum, ptx::load4(from + g * QUADS * 16));
    return sum;
  };
  auto in_turn = [&](int first, int last, auto sum_of, auto use) {
#pragma unroll 1
    for (int q = first + turn; q < last; q += AT_A_TIME * T::KG) {
      float4 sums[AT_A_TIME];
#pragma unroll
      for (int i = 0; i < AT_A_TIME; ++i)
        if (q + i * T::KG < last) sums[i] = sum_of(q + i * T::KG);
#pragma unroll
      for (int i = 0; i < AT_A_TIME; ++i)
        if (q + i * T::KG < last) use(q + i * T::KG, sums[i]);
    }
  };
  if constexpr (T::SPLIT == 2 && SHARE % T::KG == 0) {
    // A block keeps its own share in registers, and adds it up while the other's is on its way: 14.8 instead of 15.5 us
    // at 512. In 96 x 96 tiles, where shares do not come out even, it spills: 29.1 instead of 28.3 us at 768.
    constexpr int OWN = SHARE / T::KG;
    const int mine = rank * SHARE, other = SHARE - mine;
    ptx::cluster_wait();  // the other block has begun: its inbox exists
    in_turn(other, other + SHARE, sum_parts, [&](int q, float4 sum) { cluster.scatter(q * GT + lane, sum); });
    ptx::cluster_arrive();
    float4 own[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) own[i] = sum_parts(mine + turn + i * T::KG);
    ptx::cluster_wait();
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
      const int q = turn + i * T::KG;
      put(mine + q, add(own[i], cluster.received(q * GT + lane)));
    }
  } else if constexpr (T::SPLIT > 1) {
    ptx::cluster_wait();  // the other blocks have begun: their inboxes exist
    in_turn(0, T::thread_quads(), sum_parts, [&](int q, float4 sum) { cluster.scatter(q * GT + lane, sum); });
    ptx::cluster_arrive();
    ptx::cluster_wait();
    in_turn(
        rank * SHARE, (rank + 1) * SHARE, [&](int q) { return cluster.gather((q - rank * SHARE) * GT + lane); }, put);
  } else {
    in_turn(0, T::thread_quads(), sum_parts, put);
  }
}

}  // namespace fl
