// Strict SGEMM of 10^4 to 10^6 outputs with k from 10 to 400, products that are over in a few microseconds: eight warps
// to a tile, in groups that share the lines of every step along k.
//
//   row         tile       groups   thread tile   registers   blocks on a multiprocessor
//   32x32i4     32 x 32      4         4 x 4          77              3
//   32x64i4     32 x 64      4         4 x 8          80              3
//   64x64i2     64 x 64      2         8 x 4          80              3
//   64x128i2    64 x 128     2         8 x 8         124              2
//
// All threads of a block copy, and all multiply: with three stages and two plain barriers there is little to start and
// little to end, which is what counts where k is 10 to 400. A step is BK = 32 of k; of its lines, group g of G takes
// g, g + G, ...: so short steps, and the last one, are shared evenly as well. Each group's sums are one chain of FMAs
// in ascending k; they meet in shared memory, are added in the order of the groups, and leave in whole rows of the
// tile, 32 neighbouring floats to a store, whatever the alignment of C.
//
// What lost is in docs/sgemm_strict.md.
#include "cuda/kernels/common/split_k.cuh"
#include "cuda/kernels/sgemm_strict/block_room.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict_plan.h"

namespace fl {
namespace {

template <InterleavedTile TILE>
struct Interleaved {
  static_assert(must_be_sound<TILE>());
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM, TN = TILE.TN;
  static constexpr int K_GROUPS = TILE.k_groups, STAGES = TILE.stages, BLOCKS = TILE.blocks;
  static constexpr int WARPS_N = TILE.warps_n(), GROUP_THREADS = TILE.group_threads(), THREADS = TILE.THREADS;
  using CopyA = TileCopy<BK, BM, THREADS, Tail::none, 4>;
  using CopyB = TileCopy<BK, BN, THREADS, Tail::none, 4>;
  static constexpr int STAGE_BYTES = TILE.stage_bytes(), PIPELINE_BYTES = TILE.pipeline_bytes();
  static constexpr int PITCH = padded_row(BN), SUMS_BYTES = TILE.sums_bytes();  // of a group
  static constexpr int SHARED_BYTES = TILE.shared_bytes();
  static constexpr int LINES = BK / K_GROUPS;  // of a whole step for each group
};

struct InterleavedPlan {
  Operand a, b;
  TileGrid grid;
  float one;             // 1.0f, as a number that the compiler does not know
  unsigned splits;       // ranges of k, each a part of the grid
  int64_t range;         // of k, a multiple of BK
  int64_t split_stride;  // from the sums of one range to those of the next
};

template <class T>
struct InterleavedSums {
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

  // A value of A stays in the reuse cache along a row; rows run back and forth, as in mainloop.cuh.
  __device__ __forceinline__ void add_product(const Fragments& of) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(of.a[i], of.b[j], acc[i][j]);
      }
  }

  // The next `lines` lines of the group in a stage.
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b, int lines) {
    constexpr int A_STEP = T::K_GROUPS * T::CopyA::LD * 4, B_STEP = T::K_GROUPS * T::CopyB::LD * 4;
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
struct InterleavedCorner {
  int64_t batch, row, col;
  int rows, cols;
};

// A warp to a row of the tile: adds the groups' parts and stores.
template <class T>
__device__ __forceinline__ void sum_and_store(const SgemmArgs& p, const InterleavedCorner& at, uint32_t parts, int t) {
  const int lane = t % 32;
#pragma unroll 4
  for (int r = t / 32; r < T::BM; r += T::THREADS / 32) {
    float sums[T::BN / 32];
#pragma unroll
    for (int j = 0; j < T::BN / 32; ++j) {
      const uint32_t from = parts + (r * T::PITCH + lane + 32 * j) * 4;
      sums[j] = ptx::load1(from);
#pragma unroll
      for (int g = 1; g < T::K_GROUPS; ++g) sums[j] += ptx::load1(from + g * T::SUMS_BYTES);
    }
    if (r >= at.rows) return;
#pragma unroll
    for (int j = 0; j < T::BN / 32; ++j)
      if (lane + 32 * j < at.cols) store(p, at.batch, at.row + r, at.col + lane + 32 * j, sums[j]);
  }
}

template <class T, bool SPLIT_K>
__global__ void __launch_bounds__(T::THREADS, T::BLOCKS)
    strict_interleaved_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ InterleavedPlan plan) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, group = t / T::GROUP_THREADS, warp = t % T::GROUP_THREADS / 32;
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(SPLIT_K ? blockIdx.x / plan.splits : blockIdx.x);
  const unsigned part = SPLIT_K ? blockIdx.x % plan.splits : 0;
  const int64_t first = part * plan.range, depth = SPLIT_K ? min(plan.range, p.k - first) : p.k;
  InterleavedCorner at{tile.batch, tile.row * T::BM, tile.col * T::BN};
  at.rows = static_cast<int>(min(p.m - at.row, int64_t{T::BM}));
  at.cols = static_cast<int>(min(p.n - at.col, int64_t{T::BN}));
  typename T::CopyA a(plan.a, first_of(plan.a, tile.batch, first, at.row), minus_zeros, t);
  typename T::CopyB b(plan.b, first_of(plan.b, tile.batch, first, at.col), plus_zeros, t);
  a.length = at.rows;
  b.length = at.cols;
  const int row = warp / T::WARPS_N * 8 * T::TM + lane.row * 4, col = warp % T::WARPS_N * 4 * T::TN + lane.col * 4;
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
      into = into + T::STAGE_BYTES == T::PIPELINE_BYTES ? 0 : into + T::STAGE_BYTES;
    }
    ptx::commit_copies();
  };
#pragma unroll 1
  for (int s = 0; s < T::STAGES - 1; ++s) copy_next();
  InterleavedSums<T> sums;
#pragma unroll 1
  for (int64_t k = 0; k < depth; k += T::BK) {
    ptx::wait_copies<T::STAGES - 2>();
    __syncthreads();  // everybody's copies of this stage have arrived, and the one that is filled next has been read
    copy_next();
    sums.multiply(a_first + from, b_first + from, (k_left(depth - k, T::BK) - group + T::K_GROUPS - 1) / T::K_GROUPS);
    from = from + T::STAGE_BYTES == T::PIPELINE_BYTES ? 0 : from + T::STAGE_BYTES;
  }
  pdl_launch_next();  // what is left to do takes as long as the next kernel needs to start
  __syncthreads();
  sums.leave(shared + group * T::SUMS_BYTES + (row * T::PITCH + col) * 4, plan.one);
  __syncthreads();
  if (SPLIT_K) at.col += part * plan.split_stride;
  sum_and_store<T>(p, at, shared, t);
#else
  not_for_this_target();
#endif
}

template <class T, bool SPLIT_K>
void launch_interleaved(const SgemmArgs& p, const InterleavedPlan& plan, const Context& ctx) {
  const unsigned blocks = plan.grid.blocks() * plan.splits;
  launch_kernel<strict_interleaved_kernel<T, SPLIT_K>>(with_room<T>(blocks, ctx), ctx, p, plan);
}

template <InterleavedTile TILE>
void strict_interleaved(const SgemmArgs& p, const Context& ctx) {
  using T = Interleaved<TILE>;
  const SplitKPlan split_k = split_k_plan(p, TILE);
  InterleavedPlan plan{operand(p.a, p.a.cs, p.a.rs), operand(p.b, p.b.rs, p.b.cs),
                       TileGrid(p.m, p.n, p.batch, T::BM, T::BN), 1.0f, static_cast<unsigned>(split_k.splits)};
  if (split_k.splits == 1) return launch_interleaved<T, false>(p, plan, ctx);
  plan.range = ceil_div(ceil_div(p.k, T::BK), split_k.splits) * T::BK;
  plan.split_stride = p.batch * p.m * split_k.ld;
  float* sums = static_cast<float*>(ctx.workspace);
  SgemmArgs part = p;
  part.alpha = 1.0f, part.beta = 0.0f, part.c = {sums, split_k.ld, 1, p.m * split_k.ld};
  launch_interleaved<T, true>(part, plan, ctx);
  reduce_split_k(p, split_k.splits, sums, split_k.ld, ctx);
}

}  // namespace

void sgemm_strict_32x32i4(const SgemmArgs& p, const Context& ctx) { strict_interleaved<strict_32x32i4>(p, ctx); }
void sgemm_strict_32x64i4(const SgemmArgs& p, const Context& ctx) { strict_interleaved<strict_32x64i4>(p, ctx); }
void sgemm_strict_64x64i2(const SgemmArgs& p, const Context& ctx) { strict_interleaved<strict_64x64i2>(p, ctx); }
void sgemm_strict_64x128i2(const SgemmArgs& p, const Context& ctx) { strict_interleaved<strict_64x128i2>(p, ctx); }

}  // namespace fl
