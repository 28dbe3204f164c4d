// Strict SGEMM for Hopper below 500 rows and columns: cluster split-K. Each warp of the blocks of a cluster has a
// range of k, over which it multiplies the whole tile of its block.
//
// There is too little work here to fill the GPU with tiles, and what counts is the time from launch to the last store.
// A warp owns a pipeline of tiles that only it copies into and only it reads, so there is no barrier before the sums
// are added: over the k_groups warps in shared memory, then over the cluster_k blocks of a cluster in each other's
// shared memory, both in the order of k. Same inputs, same bits; no atomics, no workspace, no second kernel.
//
// A lies with k contiguous here: it arrives by 16-byte copies, and one read serves four k of a row. A fragment then has
// one register parity for a whole k, and in a model of the register banks an eighth to a fifth of the FMAs wait.
// Transposed on the way in, as in pipelined.cuh, they flow freely, but four times the copies cost more than that at 192
// rows, and less at 384: 5.5 instead of 5.4 us, 11.9 instead of 12.1.
//
// One block to a multiprocessor, which is what the shared memory of these sizes comes to. With room for two it took
// half as long again; presumably both blocks of a cluster went to the same one, and others had none.
#pragma once

#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/common/ptx_cluster.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict/cluster_plan.h"

namespace fl {

// As ClusterSum (group_sums.cuh), where a block's share is small: what it receives is counted, 16 bytes at a time, at a
// barrier of its own, and nobody waits for a whole cluster. 0.2 to 0.5 us sooner with up to 288 fours for a block; with
// 512, in 64 x 64 tiles of pipelined.cuh, 0.3 us later.
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

// A tile as a kernel sees it. RUNS: each warp adds up runs of its range of k (cluster_plan.h); a kernel of its own,
// since it takes twice the registers for sums. TMA: cluster_split_k_tma.cuh.
template <ClusterSplitKTile TILE, bool IN_RUNS, bool BOXES = false>
struct ClusterSplitK {
  static_assert(TILE.sound());
  static constexpr bool TMA = BOXES, RUNS = IN_RUNS;
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM(), TN = TILE.TN();
  static constexpr int K_GROUPS = TILE.k_groups, CLUSTER_K = TILE.cluster_k,
                       STAGES = TMA ? TILE.tma_stages : TILE.stages, THREADS = TILE.threads(), QUADS = BM * BN / 4;
  static constexpr int A_LD = TMA ? BK : padded_row(BK), B_LD = TMA ? BN : padded_row(BN), A_BYTES = TILE.a_bytes(TMA);
  using Sum = CountedSum<CLUSTER_K, QUADS>;
  static constexpr int STAGE_BYTES = TILE.stage_bytes(TMA), PIPELINE_BYTES = TILE.pipeline_bytes(TMA);  // of a warp
  static constexpr int INBOX = TILE.inbox(TMA), BARRIERS = TILE.barriers(TMA), SHARED_BYTES = TILE.shared_bytes(TMA);
  static_assert(BARRIERS == INBOX + Sum::BYTES);
};

// Sums of the runs of a range, in the order of k. Of each 64 k they take one addition for 64 FMAs.
template <class T, bool = T::RUNS>
struct RangeRuns {
  __device__ __forceinline__ void stage_done(float (&)[T::TM][T::TN]) {}
  __device__ __forceinline__ void end(float (&)[T::TM][T::TN]) const {}
};
template <class T>
struct RangeRuns<T, true> {
  static constexpr int STAGES = WARP_RUN / T::BK;
  float sums[T::TM][T::TN] = {};
  int left = STAGES;

  __device__ __forceinline__ void stage_done(float (&acc)[T::TM][T::TN]) {
    if (--left > 0) return;
    left = STAGES;
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) sums[i][j] += acc[i][j], acc[i][j] = 0.0f;
  }
  __device__ __forceinline__ void end(float (&acc)[T::TM][T::TN]) const {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) acc[i][j] += sums[i][j];
  }
};

// A warp's sums and fragments. Those of A are four k of a row, those of B a row of one k and of the next. All are
// loaded while what comes before them is multiplied, four k to a trip of the loop: unrolled over a stage, the FMAs came
// in an order that cost a fifth of the issue slots in the register banks: 12.2 us instead of 11.5 with 48 x 48 tiles.
template <class T>
struct RangeMath {
  static constexpr int A_ROW = T::A_LD * 4, B_ROW = T::B_LD * 4;
  float acc[T::TM][T::TN];
  float4 a_rows[T::TM];
  float b_even[T::TN], b_odd[T::TN];
  RangeRuns<T> runs;

  static __device__ __forceinline__ void load_b(float (&b_frag)[T::TN], uint32_t b) {
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], ptx::load4(b + j * 16));
  }
  __device__ __forceinline__ void start(uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) a_rows[i] = ptx::load4(a + i * 8 * A_ROW);
    load_b(b_even, b);
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) acc[i][j] = 0.0f;
  }

  template <int L>
  __device__ __forceinline__ void one_k(const float (&b_frag)[T::TN], uint32_t a_next) {
#pragma unroll
    for (int i = 0; i < T::TM; ++i) {
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = (i + L * T::TM) % 2 ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(component(a_rows[i], L), b_frag[j], acc[i][j]);
      }
      if (L == 3) a_rows[i] = ptx::load4(a_next + i * 8 * A_ROW);
    }
  }

  // The four k at b, and the fragments of the four behind them.
  __device__ __forceinline__ void four_k(uint32_t b, uint32_t a_next, uint32_t b_next) {
    load_b(b_odd, b + B_ROW);
    one_k<0>(b_even, 0);
    load_b(b_even, b + 2 * B_ROW);
    one_k<1>(b_odd, 0);
    load_b(b_odd, b + 3 * B_ROW);
    one_k<2>(b_even, 0);
    load_b(b_even, b_next);
    one_k<3>(b_odd, a_next);
  }

  // The warp's part of the sums, as fours of neighbours. `one`: see group_sums.cuh.
  __device__ __forceinline__ void store(uint32_t to, float one, int lane) const {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; j += 4)
        ptx::store4(to + ((i * T::TN + j) / 4 * 32 + lane) * 16,
                    one * float4{acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]});
  }
};

struct ClusterSplitKPlan {
  Operand a, b;
  TileGrid grid;
  int64_t range;  // of k, for each of the K_GROUPS * CLUSTER_K warps; a multiple of BK
  bool c_by16;
  float one;  // as in pipelined.cuh: 1.0f, unknown to the compiler
};

// One warp's way along its range of k.
template <class T>
struct WarpRange {
  uint32_t pipeline;
  TileCopy<T::BM, T::BK, 32, Tail::of_columns> a;
  TileCopy<T::BK, T::BN, 32, Tail::of_lines> b;
  int64_t to_copy;
  int into = 0;

  // Starts the copies of the next stage; behind the end of the range an empty group keeps the count of groups right.
  __device__ __forceinline__ void copy_next() {
    if (to_copy > 0) {
      const uint32_t stage = pipeline + into * T::STAGE_BYTES;
      a.length = b.lines = k_left(to_copy, T::BK);
      a(stage);
      b(stage + T::A_BYTES);
      a.next_columns();
      b.next_lines();
      to_copy -= T::BK;
      into = into + 1 == T::STAGES ? 0 : into + 1;
    }
    ptx::commit_copies();
  }
};

// math.acc = the product over the range, in ascending k. What is loaded behind its end is not used.
template <class T>
__device__ __forceinline__ void multiply_range(RangeMath<T>& math, WarpRange<T>& range, int64_t count, Lane lane) {
  constexpr int A_ROW = T::A_LD * 4, B_ROW = T::B_LD * 4;
  const uint32_t a_at = lane.row * A_ROW, b_at = T::A_BYTES + lane.col * 16;
  uint32_t stage = range.pipeline, a = stage + a_at, b = stage + b_at;
  ptx::wait_copies<T::STAGES - 2>();
  __syncwarp();  // all lanes' copies have arrived
  math.start(a, b);
#pragma unroll 1
  for (int64_t stages = ceil_div(count, T::BK); stages > 0; --stages) {
    __syncwarp();  // all lanes have read the stage before this one, which is filled now
    range.copy_next();
#pragma unroll 1
    for (int k = 4; k < T::BK; k += 4, a += 16, b += 4 * B_ROW) math.four_k(b, a + 16, b + 4 * B_ROW);
    stage = stage == range.pipeline + (T::STAGES - 1) * T::STAGE_BYTES ? range.pipeline : stage + T::STAGE_BYTES;
    ptx::wait_copies<T::STAGES - 2>();
    __syncwarp();
    math.four_k(b, stage + a_at, stage + b_at);
    a = stage + a_at, b = stage + b_at;
    math.runs.stage_done(math.acc);
  }
  math.runs.end(math.acc);
}

// Adds the warps' parts, sends those of other blocks' shares of the tile to them, and stores what the block's own share
// comes to. The parts of that stay in registers.
template <class T>
__device__ __forceinline__ void sum_ranges(const SgemmArgs& p, const ClusterSplitKPlan& plan, const Corner& at,
                                           const typename T::Sum& cluster, uint32_t shared, int t) {
  constexpr int QUADS_EACH = (T::QUADS + T::THREADS - 1) / T::THREADS;
  const Lane lane(t % 32);
  auto put = [&](int quad, float4 sum) {
    const int i = quad / 32 / (T::TN / 4), j = quad / 32 % (T::TN / 4);
    if (!T::TMA && !plan.c_by16) return put_turned(p, at, i * 8, 1, j * 16, t % 32, sum);
    const int row = i * 8 + lane.row, col = j * 16 + lane.col * 4;
    put4(p, at.c + row * p.c.rs + col, T::TMA ? 4 : row < at.rows ? at.cols - col : 0, sum);
  };
  float4 own[QUADS_EACH];
  ptx::cluster_wait();  // the other blocks have begun: their inboxes exist
#pragma unroll
  for (int i = 0; i < QUADS_EACH; ++i) {
    const int quad = t + i * T::THREADS;
    if (quad >= T::QUADS) continue;
    own[i] = ptx::load4(shared + quad * 16);
#pragma unroll
    for (int g = 1; g < T::K_GROUPS; ++g) own[i] = add(own[i], ptx::load4(shared + g * T::PIPELINE_BYTES + quad * 16));
    cluster.send(quad, own[i]);
  }
  cluster.wait();
#pragma unroll
  for (int i = 0; i < QUADS_EACH; ++i)
    if (const int quad = t + i * T::THREADS; quad < T::QUADS && cluster.owns(quad))
      put(quad, cluster.total(quad, own[i]));
}

template <class T>
__device__ __forceinline__ void compute_block(const SgemmArgs& p, const ClusterSplitKPlan& plan, unsigned block) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t shared = ptx::shared_address(memory);
  const int t = threadIdx.x, warp = t / 32, rank = static_cast<int>(block % T::CLUSTER_K);
  const Lane lane(t % 32);
  const Tile tile = plan.grid.tile(block / T::CLUSTER_K);
  const int64_t first = (rank * T::K_GROUPS + warp) * plan.range, count = min(plan.range, p.k - first);
  const int64_t row = tile.row * T::BM, col = tile.col * T::BN;
  WarpRange<T> range{shared + warp * T::PIPELINE_BYTES,
                     {plan.a, first_of(plan.a, tile.batch, row, first), minus_zeros, t % 32},
                     {plan.b, first_of(plan.b, tile.batch, first, col), plus_zeros, t % 32},
                     count};
  range.a.lines = static_cast<int>(min(p.m - row, int64_t{T::BM}));
  range.b.length = static_cast<int>(min(p.n - col, int64_t{T::BN}));
  const typename T::Sum cluster{shared + T::INBOX, rank};
  if (warp == 0) cluster.prepare(t);
  ptx::cluster_arrive();
  pdl_launch_next();
  pdl_wait();

#pragma unroll 1
  for (int s = 0; s < T::STAGES - 1; ++s) range.copy_next();
  RangeMath<T> math;
  multiply_range(math, range, count, lane);

  ptx::wait_copies<0>();
  __syncwarp();  // the warp's pipeline is free
  math.store(range.pipeline, plan.one, t % 32);
  __syncthreads();
  sum_ranges<T>(p, plan, corner(p, tile.batch, row, col), cluster, shared, t);
#else
  not_for_this_target();
#endif
}

template <class T>
__global__ void __launch_bounds__(T::THREADS, 1)
    strict_cluster_split_k_kernel(const __grid_constant__ SgemmArgs p, const __grid_constant__ ClusterSplitKPlan plan) {
  compute_block<T>(p, plan, blockIdx.x);
}

}  // namespace fl
