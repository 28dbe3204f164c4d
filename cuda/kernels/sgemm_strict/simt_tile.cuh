// What the strict SGEMM kernels for Hopper share behind the copies: which outputs a lane computes, the sums of a split
// k and the way of the result into C.
#pragma once

#include "cuda/kernels/common/ptx_cluster.cuh"
#include "cuda/kernels/sgemm_strict/simt_copy.cuh"

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
struct WarpStage {
  static constexpr int PITCH = 20, BYTES = 8 * PITCH * 4;
  uint32_t memory;  // BYTES of it

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
template <int SPLIT, int QUADS>
struct ClusterSum {
  static constexpr int SHARE = QUADS / SPLIT, BYTES = SPLIT > 1 ? QUADS * 16 : 0;
  static_assert(QUADS % SPLIT == 0, "equal shares");
  uint32_t inbox;  // BYTES of shared memory
  int rank;

  __device__ __forceinline__ void scatter(int quad, float4 part) const {
    ptx::store4_cluster(ptx::address_in(quad / SHARE, inbox + (rank * SHARE + quad % SHARE) * 16), part);
  }
  // The sum of the share's quad number `mine`, and which quad of the tile that is.
  __device__ __forceinline__ float4 gather(int mine) const {
    float4 sum = ptx::load4(inbox + mine * 16);
#pragma unroll
    for (int r = 1; r < SPLIT; ++r) sum = add(sum, ptx::load4(inbox + (r * SHARE + mine) * 16));
    return sum;
  }
  // Of two blocks, what the other one has sent for it.
  __device__ __forceinline__ float4 received(int mine) const {
    return ptx::load4(inbox + ((1 - rank) * SHARE + mine) * 16);
  }
};

// The same where a block's share is small: what it receives is counted, 16 bytes at a time, at a barrier of its own,
// and nobody waits for a whole cluster. 0.2 to 0.5 us sooner with up to 288 fours for a block (simt_warps.cuh); with
// 512, in 64 x 64 tiles of simt_ring.cuh, 0.3 us later.
template <int SPLIT, int QUADS>
struct CountedSum {
  static constexpr int SHARE = QUADS / SPLIT, BYTES = QUADS * 16 + 16;
  static_assert(QUADS % SPLIT == 0 && SHARE % 32 == 0, "equal shares of whole warps");
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
    if (lane == 0) ptx::barrier_expect(barrier(), (SPLIT - 1) * SHARE * 16);
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
    for (int r = 1; r < SPLIT; ++r) sum = add(sum, part(r));
    return sum;
  }
};

}  // namespace fl
