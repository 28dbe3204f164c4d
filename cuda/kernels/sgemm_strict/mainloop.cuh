// The main loop of pipelined.cuh: its sizes, the stages, who works on what when, and what the multiplying warps do.
#pragma once

#include "cuda/kernels/common/ptx_barriers.cuh"
#include "cuda/kernels/sgemm_strict/tile_copy.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict/pipelined_plan.h"

namespace fl {

// A tile as a kernel sees it.
// C16: rows of C are aligned for 16-byte stores. The code for others is as long as all the rest, and beside the main
// loop of a persistent kernel it cost up to 3 %; there it is a kernel of its own.
// STREAM_K: the last tiles are shared out. Another kernel as well: whatever stands beside the main loop changes the
// compiler's choice of registers in it, here by up to 2 % of the time.
// TMA: all tiles and steps are full, A lies with k contiguous, B and C with n in aligned rows, and there is one batch.
// B arrives in boxes then. Half as long a kernel: see TileCopy.
// TRIANGLE: B is A transposed. Of squares of BN x BN, those on the diagonal of C and below it are computed, and the
// latter are mirrored. What is on the diagonal is symmetric as it is: the same products are added in the same order.
template <PipelinedTile TILE, bool ALIGNED = true, bool STREAM = false, bool LOWER = false>
struct Pipelined {
  static_assert(TILE.sound() && (TILE.triangle || !LOWER));
  static constexpr bool TRIANGLE = LOWER;
  static constexpr bool C16 = ALIGNED, STREAM_K = STREAM, TMA = TILE.tma, SPLIT_K = TILE.split_k,
                        PERSISTENT = TILE.persistent(), IN_BLOCKS = TILE.in_blocks, KEEPS_C = TILE.keeps_c;
  static constexpr PipelinedFor LEVEL = TILE.level;
  static constexpr bool HOPPER = LEVEL == PipelinedFor::hopper, BY_REGISTERS = LEVEL == PipelinedFor::any;
  static constexpr int BM = TILE.BM, BN = TILE.BN, BK = TILE.BK, TM = TILE.TM, TN = TILE.TN;
  // What neighbouring threads cover by 16-byte copies, in floats: so many that a step's lines are whole rounds.
  static constexpr int A_UNIT16 = BK % 16 != 0 ? 64 : BM % 32 == 0 ? 32 : 16;
  static constexpr int B_UNIT16 = BK % 16 != 0 ? 64 : BN % 32 == 0 ? 32 : 16;
  static constexpr int WARPS_N = TILE.warps_n, LANE_ROWS = TILE.lane_rows, LANE_COLS = TILE.lane_cols();
  static constexpr int K_GROUPS = TILE.k_groups, CLUSTER_K = TILE.cluster_k, STAGES = TILE.stages,
                       PRODUCERS = TILE.producers;
  // precision="reproducible": the steps of a block of k, which a group has by itself, and how far a group's steps lie
  // apart.
  static constexpr int BLOCK_STEPS = TILE.block_steps(), STEP_STRIDE = IN_BLOCKS ? 1 : K_GROUPS;
  static constexpr bool BLOCK_PER_GROUP = TILE.block_per_group();
  static constexpr bool GROUPS_CHANGE_STAGES = TILE.groups_change_stages();
  static constexpr int GROUP_THREADS = TILE.group_threads(), MATH_THREADS = TILE.math_threads(),
                       THREADS = TILE.threads(), PRODUCER_THREADS = TILE.PRODUCER_THREADS / PRODUCERS;
  static constexpr int THREAD_QUADS = TM * TN / 4, QUADS = BM * BN / 4;
  static constexpr int A_ROW = padded_row(BM), B_ROW = TILE.b_row(), A_BYTES = TILE.a_bytes(),
                       STAGE_BYTES = TILE.stage_bytes();
  static constexpr int INBOX = TILE.inbox(), BARRIERS = TILE.barriers(), TURNS = TILE.turns(), KEPT_C = TILE.kept_c(),
                       SHARED_BYTES = TILE.shared_bytes();
  static constexpr int MATH_REGISTERS = 224, COPY_REGISTERS = 56;

  // The groups start one after the other, as their first tiles arrive. Of four, the first and the last share the issue
  // slots of one half of the multiprocessor and the other two those of the other half: both halves end together.
  static __device__ __forceinline__ int group_of(int t) {
    const int group = t / GROUP_THREADS;
    return K_GROUPS == 4 ? group ^ group / 2 : group;
  }
};

// Stream-K: how the tiles go to the blocks of a persistent kernel (stream_k.cuh).
struct StreamK {
  unsigned tiles, waves;  // that go to them whole, block by block
  unsigned steps;         // along k of the tiles behind these, which are shared evenly; 0 if there are none
  float4* sums;           // of parts of tiles, one for each block
  unsigned* saved;        // for each warp of each block, whether they are there
};

struct PipelinedPlan {
  Operand a, b;
  unsigned tile_rows, tile_cols, tiles;
  int steps, tail;  // BK of k each, the last of them `tail`
  bool c_by16;
  float one;             // 1.0f, as a number that the compiler does not know
  unsigned zero;         // 0, likewise
  unsigned splits;       // ranges of k, each a part of the grid; 1 unless split_k
  int64_t split_stride;  // from the sums of one to those of the next
  StreamK stream_k;
};

// Row by row: operands come fast enough in any order.
template <class T>
__device__ __forceinline__ Tile rasterize_triangle(const PipelinedPlan& plan, unsigned tile) {
  constexpr unsigned HIGH = T::BN / T::BM;
  const unsigned per_batch = lower_tiles(plan.tile_rows, HIGH);
  const auto corner = lower_tile_by_rows(tile % per_batch, HIGH);
  return {tile / per_batch, corner.row, corner.col};
}

__device__ __forceinline__ Tile rasterize(const PipelinedPlan& plan, unsigned tile) {
  const unsigned per_batch = plan.tile_rows * plan.tile_cols;
  const auto corner = banded_tile(tile % per_batch, plan.tile_rows, plan.tile_cols, 8u);
  return {tile / per_batch, corner.row, corner.col};
}

// Where somebody is in the stages, and two barriers of each: it is full, and it has been read. Without barriers in
// shared memory those that hardware numbers take their place. At these the waiting warps wait for each other too; so
// there are two of each, for one of the two multiplying warps of every scheduler, and while one waits the other works.
template <class T>
struct PipelineState {
  uint32_t shared;
  int stage;
  uint32_t phase;
  __device__ __forceinline__ uint32_t tiles() const { return shared + stage * T::STAGE_BYTES; }
  __device__ __forceinline__ uint32_t full() const { return shared + T::BARRIERS + stage * 16; }
  __device__ __forceinline__ uint32_t empty() const { return full() + 8; }

  // The multiplying warps.
  __device__ __forceinline__ void consumer_wait() const {
    if constexpr (T::BY_REGISTERS) {
      ptx::named_barrier_sync(number() + half(), HALF_THREADS);
    } else {
      // A group that has not read this stage in the last round does not know whether that round has begun.
      if constexpr (T::GROUPS_CHANGE_STAGES) ptx::barrier_wait(empty(), phase ^ 1);
      ptx::barrier_wait(full(), phase);
    }
  }
  __device__ __forceinline__ void consumer_release() const {
    if constexpr (T::BY_REGISTERS) ptx::named_barrier_arrive(number() + 2 + half(), HALF_THREADS);
    else ptx::barrier_arrive(empty());
  }
  // The copying ones, where they copy through registers.
  __device__ __forceinline__ void producer_commit() const {
    ptx::named_barrier_arrive(number(), HALF_THREADS);
    ptx::named_barrier_arrive(number() + 1, HALF_THREADS);
  }
  __device__ __forceinline__ void producer_acquire() const {
    ptx::named_barrier_sync(number() + 2, HALF_THREADS);
    ptx::named_barrier_sync(number() + 3, HALF_THREADS);
  }

  template <int BY>
  __device__ __forceinline__ void advance() {
    stage += BY;
    if (stage >= T::STAGES) stage -= T::STAGES, phase ^= 1;
  }

 private:
  static constexpr int HALF_THREADS = T::MATH_THREADS / 2 + T::PRODUCER_THREADS;
  __device__ __forceinline__ int number() const { return 1 + 4 * stage; }  // of a stage's first barrier
  static __device__ __forceinline__ int half() { return threadIdx.x / (T::MATH_THREADS / 2); }
};

// The steps along k of a block: its part of the cluster's work, or of the grid's.
struct Steps {
  int first, count;
  template <class T>
  static __device__ __forceinline__ Steps of(const PipelinedPlan& plan, int rank, unsigned block) {
    if constexpr (T::CLUSTER_K > 1) return part(plan.steps, rank, T::CLUSTER_K);
    else if constexpr (T::SPLIT_K && !T::TRIANGLE) return part(plan.steps, block % plan.splits, plan.splits);
    else return {0, plan.steps};
  }

 private:
  static __device__ __forceinline__ Steps part(int all, int number, int parts) {
    const int each = (all + parts - 1) / parts, first = min(each * number, all);
    return {first, min(each, all - first)};
  }
};

// The tile that a number of the grid stands for.
template <class T>
__device__ __forceinline__ Tile tile_of(const PipelinedPlan& plan, unsigned block) {
  if constexpr (T::TRIANGLE) return rasterize_triangle<T>(plan, block);
  else return rasterize(plan, T::SPLIT_K ? block / plan.splits : block);
}

// A warp's sums. Its fragments have one buffer: those of the next k are loaded one by one as soon as the last FMA that
// needs the old ones has been issued, across the border of two steps as well. Two buffers take 24 registers more and
// were 0.7 % slower.
template <class T>
struct WarpMath {
  static constexpr int A_ROW = T::A_ROW * 4, B_ROW = T::B_ROW * 4;
  // A stage is given back when its last fragments are on their way, and where copies write it anew that is enough. TMA
  // may write it before they are read: behind another warp's stores to C they waited so long that up to two in five
  // products of 12288 rows had a tile that was wrong. There it is given back when they have come, and that is waited
  // for behind the first row of the last k.
  static constexpr int RELEASE_ROW = T::TMA ? 1 : 0;
  PipelineState<T> pipeline;
  uint32_t a_offset, b_offset;  // of the lane's fragments in a stage
  float acc[T::TM][T::TN];
  float a_frag[T::TM], b_frag[T::TN];

  __device__ __forceinline__ void load(uint32_t a, uint32_t b) {
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) unpack(&a_frag[i], ptx::load4(a + i * T::LANE_ROWS * 4));
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) unpack(&b_frag[j], ptx::load4(b + j * T::LANE_COLS * 4));
  }

  // One k, or rows FIRST to LAST - 1 of it. A row's fragment of a is free after its four rows, b's after the last row;
  // that one runs in the same direction as the first row of the next k, so that the fragment which is loaded first is
  // needed first.
  template <bool NEXT, int FIRST = 0, int LAST = T::TM>
  __device__ __forceinline__ void rotate(uint32_t a_next, uint32_t b_next) {
#pragma unroll
    for (int i = FIRST; i < LAST; ++i) {
#pragma unroll
      for (int step = 0; step < T::TN; ++step) {
        const int j = i % 2 && i + 1 < T::TM ? T::TN - 1 - step : step;
        acc[i][j] = fmaf(a_frag[i], b_frag[j], acc[i][j]);
        if (NEXT && i + 1 == T::TM && j % 4 == 3)
          unpack(&b_frag[j - 3], ptx::load4(b_next + (j - 3) * T::LANE_COLS * 4));
      }
      if (NEXT && i % 4 == 3) unpack(&a_frag[i - 3], ptx::load4(a_next + (i - 3) * T::LANE_ROWS * 4));
    }
  }

  __device__ __forceinline__ void zero() {
#pragma unroll
    for (int i = 0; i < T::TM; ++i)
#pragma unroll
      for (int j = 0; j < T::TN; ++j) acc[i][j] = 0.0f;
  }

  // acc += the sum over the group's steps of one tile.
  __device__ __forceinline__ void multiply(const PipelinedPlan& plan, const Steps& steps, int group) {
    if (group >= steps.count) return;
    pipeline.consumer_wait();
    uint32_t a = pipeline.tiles() + a_offset, b = pipeline.tiles() + b_offset;
    load(a, b);
    // Behind the end of k there is padding whose products change nothing, so that k comes in pairs, two or more.
    const int tail = T::TMA ? T::BK : max((plan.tail + 1) / 2 * 2, 4);
    for (int step = group; step < steps.count; step += T::STEP_STRIDE) {
      const uint32_t last_pair = a + ((!T::TMA && steps.first + step + 1 == plan.steps ? tail : T::BK) - 2) * A_ROW;
#pragma unroll 1
      do {
        rotate<true>(a + A_ROW, b + B_ROW);
        a += 2 * A_ROW;
        b += 2 * B_ROW;
        asm volatile("" : "+r"(a), "+r"(b));
        rotate<true>(a, b);
      } while (a != last_pair);
      rotate<true>(a + A_ROW, b + B_ROW);
      rotate<false, 0, RELEASE_ROW>(a, b);
      release(plan);
      if (step + T::STEP_STRIDE < steps.count) {
        pipeline.consumer_wait();
        a = pipeline.tiles() + a_offset;
        b = pipeline.tiles() + b_offset;
        rotate<true, RELEASE_ROW>(a, b);
      } else {
        rotate<false, RELEASE_ROW>(a, b);
      }
    }
  }

  // Every lane says that it is done with the stage. One per warp would be enough, but a race checker that follows each
  // thread by itself wants all, and that costs nothing that can be measured.
  __device__ __forceinline__ void release(const PipelinedPlan& plan) {
    if constexpr (T::TMA) ptx::barrier_arrive(pipeline.empty() + zero_of_fragments(plan));
    else pipeline.consumer_release();
    pipeline.template advance<T::K_GROUPS>();
  }
  // 0, which is known when all fragments are there.
  __device__ __forceinline__ unsigned zero_of_fragments(const PipelinedPlan& plan) const {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < T::TM; i += 4) bits |= __float_as_uint(a_frag[i]);
#pragma unroll
    for (int j = 0; j < T::TN; j += 4) bits |= __float_as_uint(b_frag[j]);
    return bits & plan.zero;
  }

  // q counts rows of the thread tile, four columns at a time.
  __device__ __forceinline__ const float* four(int q) const { return &acc[q / (T::TN / 4)][q % (T::TN / 4) * 4]; }
  __device__ __forceinline__ float4 quad(int q) const {
    const float* sums = four(q);
    return {sums[0], sums[1], sums[2], sums[3]};
  }
  __device__ __forceinline__ void set_quad(int q, float4 sums) {
    unpack(&acc[q / (T::TN / 4)][q % (T::TN / 4) * 4], sums);
  }
};

}  // namespace fl
