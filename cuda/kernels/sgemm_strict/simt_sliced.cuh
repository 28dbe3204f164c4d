// Strict SGEMM for products that are over in a few microseconds: tiles of few outputs, each by eight warps that share
// out every step along k.
//
// All threads of a block copy, and all multiply: with three slots and two plain barriers there is little to start and
// little to end, which is what counts where k is 10 to 400. A step is BK = 32 of k; of its lines, group g of G takes
// g, g + G, ...: so short steps, and the last one, are shared evenly as well. Each group's sums are one chain of FMAs
// in ascending k; they meet in shared memory, are added in the order of the groups, and leave in whole rows of the
// tile, 32 neighbouring floats to a store, whatever the alignment of C.
//
// What lost is in docs/sgemm_strict.md.
#pragma once

#include <algorithm>

#include "cost/simt_rules.h"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/sum_splits.cuh"
#include "cuda/kernels/sgemm_strict/simt_tile.cuh"

namespace fl {

constexpr int SM_SHARED = 233472;  // of a multiprocessor; 1 KiB of it goes to the system for every block

// Of S: BM, BN, TM, TN, G, SLOTS and BLOCKS, which have to find room on a multiprocessor.
template <class S>
struct SimtSlicedTile : S {
  using S::BM, S::BN, S::TM, S::TN, S::G, S::SLOTS, S::BLOCKS;
  static constexpr int BK = 32, WARP_COLS = BN / (4 * TN), GROUP = BM / (8 * TM) * WARP_COLS * 32, THREADS = GROUP * G;
  using CopyA = TileCopy<BK, BM, THREADS, Tail::none, 4>;
  using CopyB = TileCopy<BK, BN, THREADS, Tail::none, 4>;
  static constexpr int SLOT = CopyA::BYTES + CopyB::BYTES, RING = SLOTS * SLOT;
  static constexpr int PITCH = BN + 4, PART = BM * PITCH * 4;  // of the sums of a group
  static constexpr int SHARED = RING > G* PART ? RING : G* PART;
  static constexpr int LINES = BK / G;  // of a whole step for each group
  static_assert(THREADS == 256 && BM % (8 * TM) == 0 && BN % (4 * TN) == 0 && BN % 32 == 0 && BK % G == 0);
  static_assert(BLOCKS >= 2 && BLOCKS * (SHARED + 1024) <= SM_SHARED);
};

struct SimtSlicedPlan {
  Operand a, b;
  TileGrid grid;
  float one;             // 1.0f, as a number that the compiler does not know
  unsigned splits;       // ranges of k, each a part of the grid
  int64_t range;         // of k, a multiple of BK
  int64_t split_stride;  // from the sums of one range to those of the next
};

template <class T>
struct SlicedSums {
  float acc[T::TM][T::TN] = {};

  struct Fragments {
    float a[T::TM], b[T::TN];
    __device__ __forceinline__ void load(uint32_t a_line, uint32_t b_line) {
#pragma unroll
      for (int i = 0; i < T::TM; i += 4) unpack(&a[i], ptx::load4(a_line + i * 32));
#pragma unroll
      for (int j = 0; j < T::TN; j += 4) unpack(&b[j], ptx::load4(b_line + j * 16));
    }
  };

  // A value of A stays in the reuse cache along a row; rows run back and forth, as in simt_ring_math.cuh.
  __device__ __forceinline__ void add_product(const Fragments& of) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(of.a[i], of.b[j], acc[i][j]);
      }
  }

  // The next `lines` lines of the group in a slot.
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b, int lines) {
    constexpr int A_STEP = T::G * T::CopyA::LD * 4, B_STEP = T::G * T::CopyB::LD * 4;
    if (lines == T::LINES) {
      Fragments of[2];
      of[0].load(a, b);
#pragma unroll
      for (int l = 0; l < T::LINES; ++l) {
        if (l + 1 < T::LINES) of[(l + 1) % 2].load(a + (l + 1) * A_STEP, b + (l + 1) * B_STEP);
        add_product(of[l % 2]);
      }
    } else {
#pragma unroll 1
      for (int l = 0; l < lines; ++l) {
        Fragments of;
        of.load(a + l * A_STEP, b + l * B_STEP);
        add_product(of);
      }
    }
  }

  // A 16-byte store wants four neighbouring registers; the products with one free the sums from that (docs).
  __device__ __forceinline__ void leave(uint32_t part, float one) const {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        ptx::store4(part + ((i / 4 * 32 + i % 4) * T::PITCH + j * 4) * 4,
                    one * float4{acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]});
  }
};

// The outputs of a block: where they begin in C, and which of them exist.
struct SlicedCorner {
  int64_t batch, row, col;
  int rows, cols;
};

// A warp to a row of the tile: adds the groups' parts and stores.
template <class T>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const SlicedCorner& at, uint32_t parts, int t) {
  const int lane = t % 32;
#pragma unroll 4
  for (int r = t / 32; r < T::BM; r += T::THREADS / 32) {
    float sums[T::BN / 32];
#pragma unroll
    for (int j = 0; j < T::BN / 32; ++j) {
      const uint32_t from = parts + (r * T::PITCH + lane + 32 * j) * 4;
      sums[j] = ptx::load1(from);
#pragma unroll
      for (int g = 1; g < T::G; ++g) sums[j] += ptx::load1(from + g * T::PART);
    }
    if (r >= at.rows) return;
#pragma unroll
    for (int j = 0; j < T::BN / 32; ++j)
      if (lane + 32 * j < at.cols) store(p, at.batch, at.row + r, at.col + lane + 32 * j, sums[j]);
  }
}

template <class T, bool CUT>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    simt_sliced_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ SimtSlicedPlan plan) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, group = t / T::GROUP, warp = t % T::GROUP / 32;
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(CUT ? blockIdx.x / plan.splits : blockIdx.x);
  const unsigned part = CUT ? blockIdx.x % plan.splits : 0;
  const int64_t first = part * plan.range, depth = CUT ? min(plan.range, p.k - first) : p.k;
  SlicedCorner at{tile.batch, tile.row * T::BM, tile.col * T::BN};
  at.rows = static_cast<int>(min(p.m - at.row, int64_t{T::BM}));
  at.cols = static_cast<int>(min(p.n - at.col, int64_t{T::BN}));
  typename T::CopyA a(plan.a, first_of(plan.a, tile.batch, first, at.row), minus_zeros, t);
  typename T::CopyB b(plan.b, first_of(plan.b, tile.batch, first, at.col), plus_zeros, t);
  a.length = at.rows;
  b.length = at.cols;
  const int row = warp / T::WARP_COLS * 8 * T::TM + lane.row * 4, col = warp % T::WARP_COLS * 4 * T::TN + lane.col * 4;
  const uint32_t a_first = shared + (group * T::CopyA::LD + row) * 4;
  const uint32_t b_first = shared + T::CopyA::BYTES + (group * T::CopyB::LD + col) * 4;
  pdl_wait();
  int64_t to_copy = depth;
  int into = 0, from = 0;
  auto copy_next = [&] {
    if (to_copy > 0) {
      a.lines = b.lines = k_left(to_copy, T::BK);
      a(shared + into);
      b(shared + into + T::CopyA::BYTES);
      a.next_lines();
      b.next_lines();
      to_copy -= T::BK;
      into = into + T::SLOT == T::RING ? 0 : into + T::SLOT;
    }
    ptx::commit_copies();
  };
#pragma unroll 1
  for (int s = 0; s < T::SLOTS - 1; ++s) copy_next();
  SlicedSums<T> sums;
#pragma unroll 1
  for (int64_t k = 0; k < depth; k += T::BK) {
    ptx::wait_copies<T::SLOTS - 2>();
    __syncthreads();  // everybody's copies of this slot have arrived, and the one that is filled next has been read
    copy_next();
    sums.multiply(a_first + from, b_first + from, (k_left(depth - k, T::BK) - group + T::G - 1) / T::G);
    from = from + T::SLOT == T::RING ? 0 : from + T::SLOT;
  }
  pdl_launch_next();  // what is left to do takes as long as the next kernel needs to start
  __syncthreads();
  sums.leave(shared + group * T::PART + (row * T::PITCH + col) * 4, plan.one);
  __syncthreads();
  if (CUT) at.col += part * plan.split_stride;
  sum_and_store<T>(p, at, shared, t);
#else
  not_for_this_target();
#endif
}

// Blocks of the next kernel begin while the last ones of this one end, and land where there is room: two of them on a
// multiprocessor and none on another, which took 45 instead of 33 us for 216 x 3902 x 499 in 64 x 128 tiles. So there
// is room for as many as come to each, or for BLOCKS where that is no constraint.
template <class T>
int room_for(unsigned blocks, unsigned multiprocessors) {
  const unsigned each = (blocks + multiprocessors - 1) / multiprocessors;
  if (blocks <= multiprocessors / 2 || each >= T::BLOCKS) return T::SHARED;
  return std::max(T::SHARED, SM_SHARED / static_cast<int>(each + 1) - 768);
}

template <class T, bool CUT>
void launch_sliced(const SgemmArgs& p, const SimtSlicedPlan& plan, const Context& ctx) {
  const unsigned blocks = plan.grid.blocks() * plan.splits;
  const int room = room_for<T>(blocks, static_cast<unsigned>(ctx.sm_count));
  launch_kernel<simt_sliced_kernel<T, CUT>>(
      {.blocks = blocks, .threads = T::THREADS, .shared_bytes = room, .most_shared_bytes = SM_SHARED / 2}, ctx, p,
      plan);
}

template <class S>
void simt_sliced(const SgemmArgs& p, const Context& ctx) {
  using T = SimtSlicedTile<S>;
  const CutPlan cut = sliced_cut(p, T::BM, T::BN, T::G);
  SimtSlicedPlan plan{operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs),
                      TileGrid(p.m, p.n, p.batch, T::BM, T::BN), 1.0f, static_cast<unsigned>(cut.splits)};
  if (cut.splits == 1) return launch_sliced<T, false>(p, plan, ctx);
  plan.range = ceil_div(ceil_div(p.k, T::BK), cut.splits) * T::BK;
  plan.split_stride = p.batch * p.m * cut.ld;
  float* sums = static_cast<float*>(ctx.workspace);
  SgemmArgs part = p;
  part.alpha = 1.0f, part.beta = 0.0f, part.c = {sums, cut.ld, 1, p.m * cut.ld};
  launch_sliced<T, true>(part, plan, ctx);
  sum_splits(p, cut.splits, sums, cut.ld, ctx);
}

}  // namespace fl
