// The epilogue of pipelined.cuh where groups of warps share k, and maybe the blocks of a cluster.
#pragma once

#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

// A block of a cluster along k has summed its part of a tile, as QUADS fours of neighbours numbered 0 to QUADS - 1.
// Each block owns an equal share of them: it receives all parts of its share and adds them in the order of k. THREADS
// threads of each block call scatter() and gather() with the same numbers; all threads call the cluster barriers in
// between.
template <int CLUSTER_K, int QUADS>
struct ClusterSum {
  static constexpr int SHARE = QUADS / CLUSTER_K, BYTES = CLUSTER_K > 1 ? QUADS * 16 : 0;
  static_assert(QUADS % CLUSTER_K == 0, "equal shares");
  uint32_t inbox;  // BYTES of shared memory
  int rank;

  __device__ __forceinline__ void scatter(int quad, float4 part) const {
    ptx::store4_cluster(ptx::address_in(quad / SHARE, inbox + (rank * SHARE + quad % SHARE) * 16), part);
  }
  // The sum of the share's quad number `mine`, and which quad of the tile that is.
  __device__ __forceinline__ float4 gather(int mine) const {
    float4 sum = ptx::load4(inbox + mine * 16);
#pragma unroll
    for (int r = 1; r < CLUSTER_K; ++r) sum = add(sum, ptx::load4(inbox + (r * SHARE + mine) * 16));
    return sum;
  }
  // Of two blocks, what the other one has sent for it.
  __device__ __forceinline__ float4 received(int mine) const {
    return ptx::load4(inbox + ((1 - rank) * SHARE + mine) * 16);
  }
};

// Adds the groups' parts in shared memory, then the blocks' in their inboxes, and stores. The quads of a lane's place
// in a group go to the groups in turn; several sums of a thread are under way at a time, and each place in C follows
// from the thread's first one. One by one, with the place worked out anew, 96 x 192 took 3 % of its time for this.
template <class T, class Math>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const PipelinedPlan& plan, const Math& math,
                                              const Corner& at, int rank, int t) {
  constexpr int GT = T::GROUP_THREADS, QUADS = T::QUADS, MATH = T::MATH_THREADS;
  constexpr int SHARE = T::THREAD_QUADS / T::CLUSTER_K, AT_A_TIME = T::THREAD_QUADS / T::K_GROUPS % 3 == 0 ? 3 : 4;
  const uint32_t parts = math.pipeline.shared;
  const ClusterSum<T::CLUSTER_K, QUADS> cluster{parts + T::INBOX, rank};
  const int lane = t % GT, turn = t / GT;
  ptx::named_barrier<1, MATH>();  // all groups are done with the pipeline
  // A 16-byte store wants its four sums in neighbouring registers. Bound to that through the main loop, every sum would
  // share a register bank with its element of B: the products with one free them.
#pragma unroll
  for (int q = 0; q < T::THREAD_QUADS; ++q)
    ptx::store4(parts + (T::group_of(t) * QUADS + q * GT + lane) * 16, plan.one * math.quad(q));
  ptx::named_barrier<1, MATH>();
  const bool by16 = T::TMA || plan.c_by16;
  const QuadPlace<T> origin(lane / 32, lane_of<T>(by16 ? t % 32 : 0), 0);
  float* const c = at.c + origin.row * p.c.rs + origin.col;
  auto put = [&](int q, float4 sum) {
    const int i = q / (T::TN / 4), down = i / 4 * T::LANE_ROWS * 4 + i % 4;
    const int across = (q - i * (T::TN / 4)) * T::LANE_COLS * 4;
    if (!by16) return put_turned(p, at, origin.row + down, 4, origin.col + across, t % 32, sum);
    const int exist = origin.row + down < at.rows ? at.cols - origin.col - across : 0;
    put4(p, c + down * p.c.rs + across, T::TMA ? 4 : exist, sum);
  };
  auto sum_parts = [&](int q) {
    const uint32_t from = parts + (q * GT + lane) * 16;
    float4 sum = ptx::load4(from);
#pragma unroll
    for (int g = 1; g < T::K_GROUPS; ++g) sum = add(sum, ptx::load4(from + g * QUADS * 16));
    return sum;
  };
  auto in_turn = [&](int first, int last, auto sum_of, auto use) {
#pragma unroll 1
    for (int q = first + turn; q < last; q += AT_A_TIME * T::K_GROUPS) {
      float4 sums[AT_A_TIME];
#pragma unroll
      for (int i = 0; i < AT_A_TIME; ++i)
        if (q + i * T::K_GROUPS < last) sums[i] = sum_of(q + i * T::K_GROUPS);
#pragma unroll
      for (int i = 0; i < AT_A_TIME; ++i)
        if (q + i * T::K_GROUPS < last) use(q + i * T::K_GROUPS, sums[i]);
    }
  };
  if constexpr (T::CLUSTER_K == 2 && SHARE % T::K_GROUPS == 0) {
    // A block keeps its own share in registers, and adds it up while the other's is on its way: 14.8 instead of 15.5 us
    // at 512. In 96 x 96 tiles, where shares do not come out even, it spills: 29.1 instead of 28.3 us at 768.
    constexpr int OWN = SHARE / T::K_GROUPS;
    const int mine = rank * SHARE, other = SHARE - mine;
    ptx::cluster_wait();  // the other block has begun: its inbox exists
    in_turn(other, other + SHARE, sum_parts, [&](int q, float4 sum) { cluster.scatter(q * GT + lane, sum); });
    ptx::cluster_arrive();
    float4 own[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) own[i] = sum_parts(mine + turn + i * T::K_GROUPS);
    ptx::cluster_wait();
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
      const int q = turn + i * T::K_GROUPS;
      put(mine + q, add(own[i], cluster.received(q * GT + lane)));
    }
  } else if constexpr (T::CLUSTER_K > 1) {
    ptx::cluster_wait();  // the other blocks have begun: their inboxes exist
    in_turn(0, T::THREAD_QUADS, sum_parts, [&](int q, float4 sum) { cluster.scatter(q * GT + lane, sum); });
    ptx::cluster_arrive();
    ptx::cluster_wait();
    in_turn(
        rank * SHARE, (rank + 1) * SHARE, [&](int q) { return cluster.gather((q - rank * SHARE) * GT + lane); }, put);
  } else {
    in_turn(0, T::THREAD_QUADS, sum_parts, put);
  }
}

}  // namespace fl
