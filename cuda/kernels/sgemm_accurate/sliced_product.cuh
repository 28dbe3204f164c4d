// The product of two operands that the split pass has cut into slices of 16 bits.
//
// Each block of 64 k is summed in a temporary accumulator and then added to a float32 one. The tensor cores truncate
// while they accumulate, which biases long sums; the promotion by additions that round to nearest is what gives float32
// accuracy, and it is hidden behind the other warpgroup's products.
//
// Persistent blocks: one warp fills the stages by bulk copies, two or three warpgroups multiply, each 64 * W rows. Two
// of them take turns. The temporary accumulator also hides the epilogue: finished rows are scaled back and stored while
// the tensor cores work on the rows of the next tile. A cluster of two blocks shares the tile of A (3 % at 8192).
//
// Lost, at 8192 and k = 1024 with two slices: four stages of 32 k (2 to 3 % slower), tiles of 128x192 (3 %), clusters
// that share B (2 %), clusters of four (120 of 132 multiprocessors fit: 5 %), stores without staging (3 %).
#pragma once

#include "cuda/kernels/sgemm_accurate/sliced_stages.cuh"

namespace fl {

template <class S_, int W_, int BN_, int WARPGROUPS_, int STAGES_, int CLUSTER_>
struct ProductTile : StageShape<S_, W_ * WARPGROUPS_ * 64, BN_> {
  static constexpr int W = W_, BN = BN_, WARPGROUPS = WARPGROUPS_, STAGES = STAGES_, CLUSTER = CLUSTER_;
  static constexpr int BM = W * WARPGROUPS * 64;
  static constexpr int STAGING = ProductTile::STAGE_BYTES * STAGES;  // of the epilogue: two boxes per warp
  static constexpr int BARRIERS = STAGING + WARPGROUPS * 4 * 2 * BOX_BYTES;
  static constexpr int SHARED_BYTES = BARRIERS + 16 * STAGES + 8 + 1024;  // aligned to 1024 by hand
  static constexpr int MATH_THREADS = 128 * WARPGROUPS, THREADS = MATH_THREADS + 128;
  static constexpr int MATH_REGISTERS = WARPGROUPS == 3 ? 160 : 240, COPY_REGISTERS = WARPGROUPS == 3 ? 32 : 24;
  static constexpr bool TURNS = CLUSTER > 1;
};

// Starts before it is known whether the product will be computed: the first copies take as long as the verdict.
template <class T>
__device__ __forceinline__ void fill_stages(const ProductPlan& plan, const Stages& stages, int rank,
                                            const VerdictShared& guard) {
  static_assert(T::STAGES * SLICE_BLOCK <= SLICED_SMALLEST_K);
  StageCursor<T> at;
  int filled = 0;
  for (int tile = blockIdx.x / T::CLUSTER; tile < plan.tile_rows * plan.tile_cols; tile += gridDim.x / T::CLUSTER) {
    TileSource<T> source(plan, tile, rank);
    for (int step = 0; step < plan.k_blocks; ++step, ++filled, at.next()) {
      if (filled == T::STAGES) {
        ptx::barrier_wait(stages.decided, 0);
        if (guard.verdict & VERDICT_REFUSED) return;
      }
      source.fill(stages, rank, at);
    }
  }
}

// By the threads that multiply. Returns the verdict; if it is a refusal, nothing is on its way into this block, where
// `ahead` stages are filled before the verdict.
template <class T>
__device__ __forceinline__ unsigned decide(const ProductPlan& plan, const Stages& stages, VerdictShared& guard,
                                           int ahead) {
  collect_words<128, T::THREADS>(plan.guard, guard);
  ptx::turn_wait(7, T::MATH_THREADS);
  const unsigned verdict = verdict_of(plan.guard, guard);
  if (threadIdx.x == 128) {
    if (blockIdx.x == 0) *plan.guard.verdict = verdict;
    guard.verdict = verdict;
    ptx::barrier_arrive(stages.decided);
    if (verdict & VERDICT_REFUSED)
      for (int stage = 0; stage < ahead; ++stage) ptx::barrier_wait(stages.full + 8 * stage, 0);
  }
  return verdict;
}

template <class T, WayOut WAY>
__device__ __forceinline__ void multiply_tiles(const ProductPlan& plan, const CUtensorMap* map, const Stages& stages,
                                               uint32_t staging, int rank, unsigned verdict) {
  constexpr int W = T::W, BN = T::BN, ACC = BN / 2, BANDS = BN / 32;
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0) - 1, lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 - 4;
  float acc[W][ACC] = {}, sum[ACC];
  const StageTiles<T> operands(stages, group);
  BoxWriter<WAY> writer{plan.out, map, staging + warp * 2 * BOX_BYTES, (verdict & VERDICT_WIDE) != 0};
  const GivenBack<typename T::S> back(verdict);
  auto first_row = [&](const ProductCorner& corner) { return corner.row * T::BM + group * W * 64 + warp % 4 * 16; };
  auto store = [&](int w, int from, int to, const ProductCorner& corner) __attribute__((always_inline)) {
    writer.store(acc[w], from, to, first_row(corner) + w * 64, corner.col * BN, w < W - 1);
  };

  StageCursor<T> at;
  ProductCorner last{-1, 0};
  if (T::TURNS && group == T::WARPGROUPS - 1) ptx::turn_pass(1, 256);
  // Once more after the last tile, for its rows. What is multiplied then goes nowhere: the code that stores is large
  // and slow where it is new, so that a second copy costs more, and a product under a condition is not overlapped.
  for (int tile = blockIdx.x / T::CLUSTER;; tile += gridDim.x / T::CLUSTER) {
    const bool more = tile < plan.tile_rows * plan.tile_cols;
    const ProductCorner corner = corner_of<T>(plan, tile, rank);
    // The stages are free for boxes then: a warp need not wait for one. In turns and with two waves, the other
    // warpgroup may still be in the last step, but is done with the stage of the one before.
    if (WAY == WayOut::boxes && !more) {
      constexpr bool ONE_FREE = T::TURNS && W > 1;
      constexpr int LEFT = W == 1 ? BANDS : BANDS * 5 / 4;
      static_assert(LEFT * T::WARPGROUPS * 4 * BOX_BYTES <= (ONE_FREE ? 1 : T::STAGES) * T::STAGE_BYTES);
      if (!ONE_FREE) ptx::turn_wait(7, T::MATH_THREADS);
      writer.use_fresh_boxes(stages.tiles + (ONE_FREE ? at.stage * T::STAGE_BYTES : 0) + warp * LEFT * BOX_BYTES);
    }
    for (int step = 0; step < plan.k_blocks; ++step, at.next()) {
      if (more) ptx::barrier_wait(stages.full + 8 * at.stage, at.parity);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        if (T::TURNS) ptx::turn_wait(1 + group, 256);
        ptx::wgmma_fence();
        operands.multiply(sum, at.stage, w);
        ptx::wgmma_commit();
        if (T::TURNS) ptx::turn_pass(1 + (group + 1) % T::WARPGROUPS, 256);
        // Rows that are finished are stored while the tensor cores work on those just issued.
        if (step == 0 && last.row >= 0) {
          if constexpr (W == 1) {
            store(0, 0, BANDS, last);
          } else if (w == 0) {
            store(0, BANDS * 3 / 4, BANDS, last);
            store(1, 0, BANDS / 2, last);
          } else {
            store(1, BANDS / 2, BANDS, last);
          }
        }
        if (step == 1 && w == 0) writer.template begin_tile<W, BN>(first_row(corner), corner.col * BN);
        if (W > 1 && w > 0 && step == plan.k_blocks - 1) store(0, 0, BANDS * 3 / 4, corner);
        ptx::wgmma_wait_all();
        ptx::written(sum);
        if (w == W - 1 && more) {
          const uint32_t empty = stages.empty + 8 * at.stage;
          if (T::CLUSTER == 1 && lane == 0) ptx::barrier_arrive(empty);
          if (T::CLUSTER > 1 && lane < T::CLUSTER) ptx::barrier_arrive_in(lane, empty);
        }
#pragma unroll
        for (int i = 0; i < ACC; ++i) acc[w][i] = fmaf(sum[i], back.of(step), acc[w][i]);
      }
      if (!more) return writer.finish();
    }
    last = corner;
  }
}

template <class T, WayOut WAY>
__global__ void __launch_bounds__(T::THREADS, 1)
    sliced_product_kernel(const __grid_constant__ ProductPlan plan, const __grid_constant__ CUtensorMap map) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  const uint32_t shared = (ptx::shared_address(memory) + 1023) & ~1023u;
  constexpr int FULL = T::BARRIERS, EMPTY = FULL + 8 * T::STAGES, DECIDED = EMPTY + 8 * T::STAGES;
  const Stages stages{shared, shared + FULL, shared + EMPTY, shared + DECIDED};
  const int rank = blockIdx.x % T::CLUSTER;
  __shared__ VerdictShared guard;
  if (threadIdx.x == 0) {
    guard = {};
    for (int s = 0; s < T::STAGES; ++s) {
      ptx::barrier_init(stages.full + 8 * s, 1);
      ptx::barrier_init(stages.empty + 8 * s, 4 * T::WARPGROUPS * T::CLUSTER);
    }
    ptx::barrier_init(stages.decided, 1);
    ptx::barrier_init_fence();
  }
  pdl_launch_next();
  ptx::touch(plan);
  __syncthreads();
  if constexpr (T::CLUSTER > 1) {
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  pdl_wait();
  if (!wanted(plan.guard)) return;
  if (threadIdx.x < 128) {
    ptx::registers_down<T::COPY_REGISTERS>();
    if (threadIdx.x == 0) fill_stages<T>(plan, stages, rank, guard);
  } else {
    ptx::registers_up<T::MATH_REGISTERS>();
    const unsigned verdict = decide<T>(plan, stages, guard, T::STAGES);
    if (!(verdict & VERDICT_REFUSED)) multiply_tiles<T, WAY>(plan, &map, stages, shared + T::STAGING, rank, verdict);
  }
  // No block leaves while another may still copy into it or arrive at its barriers.
  if constexpr (T::CLUSTER > 1) ptx::cluster_meet();
#else
  not_for_this_target();
#endif
}

}  // namespace fl
