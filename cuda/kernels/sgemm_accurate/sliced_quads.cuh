// Who computes and stores what of a tile whose k is shared: see sliced_single.cuh.
#pragma once

#include "cuda/kernels/sgemm_accurate/sliced_fallback.cuh"
#include "cuda/kernels/sgemm_accurate/sliced_product.cuh"

namespace fl {

template <class S_, int M_GROUPS_, int K_GROUPS_, int BN_, int STAGES_, int BLOCKS_>
struct SingleTile : StageShape<S_, M_GROUPS_ * 64, BN_> {
  static constexpr int M_GROUPS = M_GROUPS_, K_GROUPS = K_GROUPS_, BN = BN_, STAGES = STAGES_, BLOCKS = BLOCKS_;
  static constexpr int W = 1, CLUSTER = 1;  // as TileSource and StageTiles know them: each block has tiles of its own
  static constexpr int BM = 64 * M_GROUPS;
  static constexpr int PARTS = BLOCKS * K_GROUPS, PART_THREADS = 128 * M_GROUPS;
  // Whether two warpgroups, each with stages of its own, issue products in turns. Else both wait for theirs, and add
  // up, at the same time: 13.51 us for 12.97 at 768, 11.78 for 11.38 at 640. Products of three slices last long enough
  // (26.8 us at 1024, 26.9 in turns), and two warpgroups with one stage lose by it (16.4 for 18.4 at 1024).
  static constexpr bool TURNS = K_GROUPS == 2 && M_GROUPS == 1 && S_::COUNT == 2;
  static constexpr int QUADS = BN / 8 / PARTS;                  // of a thread's sums, in fours, that are its own
  static constexpr int SLOT_BYTES = QUADS * PART_THREADS * 16;  // what a part gets from another
  static constexpr int INBOX = SingleTile::STAGE_BYTES * STAGES;
  static constexpr int BARRIERS = INBOX + K_GROUPS * (PARTS - 1) * SLOT_BYTES;
  static constexpr int NEEDED = BARRIERS + 16 * STAGES + 8 + 1024;  // aligned to 1024 by hand
  static constexpr int SHARED_BYTES = NEEDED > FALLBACK_SHARED ? NEEDED : FALLBACK_SHARED;
  static constexpr int MATH_THREADS = PART_THREADS * K_GROUPS, THREADS = MATH_THREADS + 128;
  static_assert(QUADS * PARTS * 8 == BN && THREADS >= FALLBACK_THREADS && STAGES % K_GROUPS == 0);
};

struct SinglePlan {
  ProductPlan product;
  bool vectors;  // rows of C start at multiples of 16 bytes
  // What runs here if the slices are refused: nothing, or the plain kernel.
  bool falls_back, by16;
  SgemmArgs args;
  TileGrid grid;
};

// The blocks of 64 k that a block of threads takes, and which warpgroup this is.
template <class T>
struct PartShare {
  int rank, from, count, m_group, k_group, part;
  __device__ __forceinline__ explicit PartShare(int k_blocks, int rank = blockIdx.x % T::BLOCKS, int ranks = T::BLOCKS)
      : rank(rank) {
    from = k_blocks * rank / ranks;
    count = k_blocks * (rank + 1) / ranks - from;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0) - 1;
    m_group = T::M_GROUPS == 1 ? 0 : group % T::M_GROUPS, k_group = T::K_GROUPS == 1 ? 0 : group / T::M_GROUPS;
    part = rank * T::K_GROUPS + k_group;
  }
};

// Four sums next to each other of a row of C. Quad i of a thread: band i / 4 of 32 columns, the upper or lower eight of
// its warp's 16 rows, the left or right half of the band. See SplitShare.
template <class T>
struct Quad {
  int row, col;
  __device__ __forceinline__ Quad(const ProductCorner& corner, const PartShare<T>& share, int i) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    row = corner.row * T::BM + share.m_group * 64 + warp * 16 + lane / 4 + i / 2 % 2 * 8;
    col = corner.col * T::BN + i / 4 * 32 + i % 2 * 16 + lane % 4 * 4;
  }
  static __device__ __forceinline__ float4 of(const float (&acc)[T::BN / 2], int i) {
    const int at = i / 4 * 16 + i / 2 % 2 * 2 + i % 2 * 8;
    return {acc[at], acc[at + 1], acc[at + 4], acc[at + 5]};
  }
};

// Four neighbours of a row of C of which `exist` exist, to or from memory.
__device__ __forceinline__ float4 read_quad(const float* from, bool vector, int exist) {
  if (vector && exist >= 4) return *reinterpret_cast<const float4*>(from);
  return {exist > 0 ? from[0] : 0.0f, exist > 1 ? from[1] : 0.0f, exist > 2 ? from[2] : 0.0f,
          exist > 3 ? from[3] : 0.0f};
}
__device__ __forceinline__ void write_quad(float* to, float4 x, bool vector, int exist) {
  if (vector && exist >= 4) {
    *reinterpret_cast<float4*>(to) = x;
    return;
  }
  if (exist > 0) to[0] = x.x;
  if (exist > 1) to[1] = x.y;
  if (exist > 2) to[2] = x.z;
  if (exist > 3) to[3] = x.w;
}

// A thread's own sums on their way to C. The scales are read before the product; many of them would not fit the
// registers beside the sums (spills of 170 bytes at 64x128), and are only brought near.
template <class T>
struct QuadWriter {
  const SinglePlan& plan;
  const PartShare<T>& share;
  ProductCorner corner;
  struct Scale {
    int down;
    int4 across;
  };
  static constexpr bool KEPT = T::QUADS <= 4;
  Scale kept[KEPT ? T::QUADS : 1];

  __device__ __forceinline__ QuadWriter(const SinglePlan& plan, const PartShare<T>& share)
      : plan(plan), share(share), corner(corner_of<T>(plan.product, blockIdx.x / T::BLOCKS, 0)) {
#pragma unroll
    for (int i = 0; i < T::QUADS; ++i) {
      const Quad<T> at(corner, share, share.part * T::QUADS + i);
      if constexpr (KEPT) {
        kept[i] = scale(at);
      } else {
        ptx::prefetch_l1(plan.product.out.a_exponents + at.row);
        ptx::prefetch_l1(plan.product.out.b_exponents + at.col);
      }
    }
  }

  __device__ __forceinline__ void write(const float4 (&sums)[T::QUADS], bool wide) const {
    const Epilogue& out = plan.product.out;
    const bool whole = (corner.row + 1) * T::BM <= out.m && (corner.col + 1) * T::BN <= out.n;
    // Nearly all tiles run the few instructions of the first way alone: it is new code for every block.
    if (whole && plan.vectors && !wide && out.beta == 0.0f) write_whole(sums);
    else write_any(sums, wide);
  }

 private:
  __device__ __forceinline__ Scale scale(const Quad<T>& at) const {
    return {__ldg(plan.product.out.a_exponents + at.row),
            __ldg(reinterpret_cast<const int4*>(plan.product.out.b_exponents + at.col))};
  }

  __device__ __forceinline__ void write_whole(const float4 (&sums)[T::QUADS]) const {
    const Epilogue& out = plan.product.out;
#pragma unroll
    for (int i = 0; i < T::QUADS; ++i) {
      const Quad<T> at(corner, share, share.part * T::QUADS + i);
      const Scale e = KEPT ? kept[KEPT ? i : 0] : scale(at);
      auto result = [&](float sum, int across) { return sum * power_of_two(-e.down - across) * out.alpha; };
      *reinterpret_cast<float4*>(out.c + at.row * out.ldc + at.col) = {
          result(sums[i].x, e.across.x), result(sums[i].y, e.across.y), result(sums[i].z, e.across.z),
          result(sums[i].w, e.across.w)};
    }
  }

  __device__ __forceinline__ void write_any(const float4 (&sums)[T::QUADS], bool wide) const {
    const Epilogue& out = plan.product.out;
    auto result = [&](float sum, int e, float before) {
      const float x = (wide ? scale_wide(sum, -e) : sum * power_of_two(-e)) * out.alpha;
      return out.beta == 0.0f ? x : fmaf(out.beta, before, x);
    };
#pragma unroll
    for (int i = 0; i < T::QUADS; ++i) {
      const Quad<T> at(corner, share, share.part * T::QUADS + i);
      const Scale e = KEPT ? kept[KEPT ? i : 0] : scale(at);
      if (at.row >= out.m) continue;
      float* const c = out.c + at.row * out.ldc + at.col;
      const float4 old = out.beta == 0.0f ? float4{} : read_quad(c, plan.vectors, out.n - at.col);
      const float4 x{result(sums[i].x, e.down + e.across.x, old.x), result(sums[i].y, e.down + e.across.y, old.y),
                     result(sums[i].z, e.down + e.across.z, old.z), result(sums[i].w, e.down + e.across.w, old.w)};
      write_quad(c, x, plan.vectors, out.n - at.col);
    }
  }
};

}  // namespace fl
