// What the strict SGEMM kernels for Hopper share behind the copies: which outputs a lane computes, the sums of a split
// k and the way of the result into C.
#pragma once

#include "simt_copy.cuh"

namespace fl {

__device__ __forceinline__ float4 add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__device__ __forceinline__ void unpack(float* to, float4 v) { to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w; }

// A warp's outputs: 8 lanes down, 4 across. Lane pairs that share an address sit side by side (i, i ^ 1), so that a
// 16-byte read of shared memory serves both at once: measured 2.4 instead of 4.1 cycles.
struct Lane {
  int row, col;
  __device__ __forceinline__ explicit Lane(int lane) : row(lane / 2 % 8), col(lane / 16 * 2 + lane % 2) {}
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

// Stores four neighbours of a row of C, of which the first `exist` exist. `by16` says that all such fours are aligned.
__device__ __forceinline__ void put4(const SgemmArgs& p, float* c, bool by16, int exist, float4 sum) {
  if (by16 && exist >= 4) {
    float4 old = {};
    if (p.beta != 0.0f) old = *reinterpret_cast<const float4*>(c);
    *reinterpret_cast<float4*>(c) = {blend(p.alpha, sum.x, p.beta, &old.x), blend(p.alpha, sum.y, p.beta, &old.y),
                                     blend(p.alpha, sum.z, p.beta, &old.z), blend(p.alpha, sum.w, p.beta, &old.w)};
    return;
  }
  if (exist > 0) c[0] = blend(p.alpha, sum.x, p.beta, c);
  if (exist > 1) c[1] = blend(p.alpha, sum.y, p.beta, c + 1);
  if (exist > 2) c[2] = blend(p.alpha, sum.z, p.beta, c + 2);
  if (exist > 3) c[3] = blend(p.alpha, sum.w, p.beta, c + 3);
}

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
  __device__ __forceinline__ int quad(int mine) const { return rank * SHARE + mine; }
};

}  // namespace fl
