// The epilogue of the strict SGEMM kernels with tiles, from the multiplying warps' registers into C: which outputs a
// lane computes, the reduction over groups of warps and over a cluster, and direct stores.
#pragma once

#include "cuda/kernels/common/ptx_cluster.cuh"
#include "cuda/kernels/common/tiles.cuh"
#include "plan/strict_tiles.h"

namespace fl {

__device__ __forceinline__ float4 add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__device__ __forceinline__ float4 operator*(float f, float4 v) { return {f * v.x, f * v.y, f * v.z, f * v.w}; }

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

// A warp's outputs: 8 lanes down, 4 across. Lane pairs that share an address sit side by side (i, i ^ 1), so that a
// 16-byte read of shared memory serves both at once: 2.4 instead of 4.1 cycles, measured in a prototype.
struct Lane {
  int row, col;
  __device__ __forceinline__ explicit Lane(int lane) : row(lane / 2 % 8), col(lane / 16 * 2 + lane % 2) {}
  static __device__ __forceinline__ Lane across(int lane) {  // 4 lanes down, 8 across
    Lane at(lane);
    const int row = at.row;
    at.row = at.col, at.col = row;
    return at;
  }
};

struct Corner {  // of a block's tile in C
  float* c;
  int rows, cols;  // how many exist from here
};

__device__ __forceinline__ Corner corner(const SgemmArgs& p, int64_t batch, int64_t row, int64_t col) {
  constexpr int64_t most = 1 << 20;
  return {p.c.data + batch * p.c.bs + row * p.c.rs + col, static_cast<int>(min(p.m - row, most)),
          static_cast<int>(min(p.n - col, most))};
}

// Stores four neighbours of a row of C, of which the first `exist` exist, where all such fours are aligned.
__device__ __forceinline__ void put4(const SgemmArgs& p, float* c, int exist, float4 sum) {
  const float four[4] = {sum.x, sum.y, sum.z, sum.w};
  epilogue(p).store4(c, four, exist);
}

// The way of results into rows of C that are not aligned: the 32 lanes of a warp hold four neighbours each of 8 rows by
// 16 columns, the lane's row `row` plus `step` for each row further down. A few bytes of shared memory of the warp's
// own turn that round, so that neighbouring lanes store neighbouring floats. With stores of a lane's own four, one by
// one, 3153 x 4266 x 127 took 160 instead of 119 us.
struct WarpStaging {
  static constexpr int PITCH = padded_row(16);
  uint32_t memory;  // STAGING_BYTES of it

  __device__ __forceinline__ void put(const SgemmArgs& p, const Corner& at, int row, int step, int col, int lane_id,
                                      float4 sum) const {
    const Lane lane(lane_id);
    ptx::store4(memory + (lane.row * PITCH + lane.col * 4) * 4, sum);
    __syncwarp();
#pragma unroll
    for (int r = lane_id / 16; r < 8; r += 2) {
      const int down = row + r * step, across = col + lane_id % 16;
      if (down < at.rows && across < at.cols) {
        float* c = at.c + down * p.c.rs + across;
        epilogue(p).store(c, ptx::load1(memory + (r * PITCH + lane_id % 16) * 4));
      }
    }
    __syncwarp();
  }
};

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

// The same where a block's share is small: what it receives is counted, 16 bytes at a time, at a barrier of its own,
// and nobody waits for a whole cluster. 0.2 to 0.5 us sooner with up to 288 fours for a block (cluster_split_k.cuh);
// with 512, in 64 x 64 tiles of pipelined.cuh, 0.3 us later.
template <int CLUSTER_K, int QUADS>
struct CountedSum {
  static constexpr int SHARE = QUADS / CLUSTER_K, BYTES = QUADS * 16 + 16;
  static_assert(QUADS % CLUSTER_K == 0 && SHARE % 32 == 0, "equal shares of whole warps");
  uint32_t inbox;  // BYTES of shared memory
  int rank;

  __device__ __forceinline__ uint32_t barrier() const { return inbox + QUADS * 16; }
  // One warp, before it arrives at the cluster's barrier. Nobody sends before all have arrived there. One lane does it
  // all; what is between is for compute-sanitizer's racecheck, which takes the warp-wide instruction that the compiler
  // makes of the first step for one of all lanes, and reports a race with the second.
  __device__ __forceinline__ void prepare(int lane) const {
    if (lane == 0) {
      ptx::barrier_init(barrier(), 1);
      ptx::barrier_init_fence();
    }
    __syncwarp();
    if (lane == 0) ptx::barrier_expect(barrier(), (CLUSTER_K - 1) * SHARE * 16);
  }
  __device__ __forceinline__ bool owns(int quad) const { return quad / SHARE == rank; }
  __device__ __forceinline__ void send(int quad, float4 part) const {
    const int owner = quad / SHARE;
    if (owner == rank) return;
    ptx::store4_counted(ptx::address_in(owner, inbox + (rank * SHARE + quad % SHARE) * 16), part,
                        ptx::address_in(owner, barrier()));
  }
  __device__ __forceinline__ void wait() const { ptx::barrier_wait_for_cluster(barrier(), 0); }
  // The sum over all blocks, of which this one's part is `own`.
  __device__ __forceinline__ float4 total(int quad, float4 own) const {
    auto part = [&](int r) { return r == rank ? own : ptx::load4(inbox + (r * SHARE + quad % SHARE) * 16); };
    float4 sum = part(0);
#pragma unroll
    for (int r = 1; r < CLUSTER_K; ++r) sum = add(sum, part(r));
    return sum;
  }
};

// ---------------------------------------------------------------- of pipelined.cuh
template <class T>
__device__ __forceinline__ Lane lane_of(int lane) {
  return T::LANE_ROWS == 4 ? Lane::across(lane) : Lane(lane);
}

// Where quad q of lane `at` in warp (warp_row, warp_col) of a group lies in the tile. A lane's rows and columns come in
// fours.
template <class T>
struct QuadPlace {
  int row, col;
  __device__ __forceinline__ QuadPlace(int warp, Lane at, int q) {
    const int i = q / (T::TN / 4), j = q % (T::TN / 4);
    row = warp / T::WARPS_N * T::LANE_ROWS * T::TM + at.row * 4 + i / 4 * T::LANE_ROWS * 4 + i % 4;
    col = warp % T::WARPS_N * T::LANE_COLS * T::TN + at.col * 4 + j * T::LANE_COLS * 4;
  }
};

template <class T>
__device__ __forceinline__ WarpStaging warp_staging(uint32_t shared, int warp) {
  return {shared + T::STAGING + warp * STAGING_BYTES};
}

// Stores a warp's sums from registers. The lane's place is worked out here and now, not kept through the main loop.
template <class T, class Math>
__device__ __forceinline__ void store(const SgemmArgs& p, const Math& math, const Corner& at) {
  const int t = static_cast<int>(thread_again());
  if constexpr (T::C16) {
    const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
    float* row = at.c + place.row * p.c.rs + place.col;
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
      const bool row_exists = place.row + i / 4 * T::LANE_ROWS * 4 + i % 4 < at.rows;
      const int exist = T::TMA ? T::BN : row_exists ? at.cols - place.col : 0;
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        put4(p, row + T::LANE_COLS * j, T::TMA ? 4 : exist - T::LANE_COLS * j, math.quad((i * T::TN + j) / 4));
      row += (i % 4 == 3 ? T::LANE_ROWS * 4 - 3 : 1) * p.c.rs;
    }
  } else {
    const WarpStaging staging = warp_staging<T>(math.pipeline.shared, t / 32);
#pragma unroll
    for (int q = 0; q < T::THREAD_QUADS; ++q) {
      const QuadPlace<T> place(t / 32, Lane(0), q);
      staging.put(p, at, place.row, 4, place.col, t % 32, math.quad(q));
    }
  }
}

// Of the tiles of a triangle: those of a square on the diagonal. The others are mirrored to where no tile is computed.
template <class T>
__device__ __forceinline__ bool on_diagonal(const Tile& tile) {
  return tile.row * T::BM / T::BN == tile.col;
}

// Stores a warp's sums mirrored: what lies there of C has `at` for its corner. A lane's fours of rows are fours
// of a row then, and eight lanes have whole lines.
template <class T, class Math>
__device__ __forceinline__ void store_mirrored(const SgemmArgs& p, const Math& math, const Corner& at) {
  const int t = static_cast<int>(thread_again());
  const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), 0);
#pragma unroll
  for (int j = 0; j < T::TN; ++j) {
    const int row = place.col + j / 4 * T::LANE_COLS * 4 + j % 4;
    float* const c = at.c + row * p.c.rs + place.row;
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) {
      const int exist = row < at.rows ? at.cols - place.row - i * T::LANE_ROWS : 0;
      const float sums[4] = {math.acc[i][j], math.acc[i + 1][j], math.acc[i + 2][j], math.acc[i + 3][j]};
      float* const four = c + i * T::LANE_ROWS;
      if constexpr (T::C16) {
        epilogue(p).store4(four, sums, exist);
      } else {
#pragma unroll
        for (int r = 0; r < 4; ++r)
          if (r < exist) epilogue(p).store(four + r, sums[r]);
      }
    }
  }
}

// Adds the groups' parts in shared memory, then the blocks' in their inboxes, and stores. The quads of a lane's place
// in a group go to the groups in turn; several sums of a thread are under way at a time, and each place in C follows
// from the thread's first one. One by one, with the place worked out anew, 96 x 192 took 3 % of its time for this.
template <class T, class Math, class Plan>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const Plan& plan, const Math& math, const Corner& at,
                                              int rank, int t) {
  constexpr int GT = T::GROUP_THREADS, QUADS = T::QUADS, MATH = T::MATH_THREADS;
  constexpr int SHARE = T::THREAD_QUADS / T::CLUSTER_K, AT_A_TIME = T::THREAD_QUADS / T::K_GROUPS % 3 == 0 ? 3 : 4;
  const uint32_t parts = math.pipeline.shared;
  const ClusterSum<T::CLUSTER_K, QUADS> cluster{parts + T::INBOX, rank};
  const WarpStaging staging = warp_staging<T>(parts, t / 32);
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
    if (!by16) return staging.put(p, at, origin.row + down, 4, origin.col + across, t % 32, sum);
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
