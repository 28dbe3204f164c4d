// The product of two operands that the split pass has cut into terms of 16 bits, by persistent blocks.
//
// Each block of 64 k is summed in a temporary accumulator and then added to a float32 one. The tensor cores truncate
// while they accumulate, which biases long sums; the promotion by additions that round to nearest is what gives float32
// accuracy, and it is hidden behind the other warpgroup's products.
//
// Warp specialization: one thread is the producer, which fills the stages by bulk copies; two or three warpgroups
// multiply, each 64 * W rows. In clusters two warpgroups work in ping-pong: one issues products while the other adds up
// its last ones. The temporary accumulator also hides the epilogue: finished rows are scaled back and stored while the
// tensor cores work on the rows of the next tile. A cluster of two blocks shares the tile of A (3 % at 8192).
//
// The float32 fallback for terms that are rejected runs in some of these kernels: 48.8 us at 2048, 105.6 at 3072, with
// a launch of its own 50.2 and 104.2. All warpgroups give back their registers before.
//
// Lost, at 8192 and k = 1024 with two terms: four stages of 32 k (2 to 3 % slower), tiles of 128x192 (3 %), clusters
// that share B (2 %), clusters of four (which leave twelve multiprocessors idle: 5 %), stores without staging (3 %).
#pragma once

#include "cuda/kernels/sgemm_accurate/fallback/fallback_tile.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/three_terms.cuh"

namespace fl {

struct PersistentPlan {
  ProductPlan product;
  bool goes_on;  // if the terms are rejected: to three terms, or the float32 fallback
  Fallback fallback;
};

template <class T>
__device__ __forceinline__ int tile_count(const ProductPlan& plan) {
  return T::TRIANGLE ? plan.tile_rows * (plan.tile_rows + 1) / 2 : plan.tile_rows * plan.tile_cols;
}

// The producer. It starts before it is known whether the product will be computed: the first copies take as long as the
// range check.
template <class T>
__device__ __forceinline__ void produce_tiles(const ProductPlan& plan, const Stages& stages, int rank,
                                              const RangeShared& range) {
  StageState<T> at;
  int filled = 0;
  for (int tile = blockIdx.x / T::CLUSTER_N; tile < tile_count<T>(plan); tile += gridDim.x / T::CLUSTER_N) {
    TileProducer<T> source(plan, rasterize<T>(plan, tile, rank));
    for (int step = 0; step < plan.k_blocks; ++step, ++filled, at.next()) {
      if (filled == T::STAGES) {
        ptx::barrier_wait(stages.checked, 0);
        if (range.status & STATUS_ELSEWHERE) return;
      }
      source.fill(stages, rank, at);
    }
  }
}

// The stages are free for boxes when the last rows are stored: a warp need not wait for one. In ping-pong and with two
// waves, the other warpgroup may still be in the last step, but is done with the stage of the one before.
template <class T, class Epilogue>
__device__ __forceinline__ void use_stages_as_boxes(Epilogue& epilogue, const Stages& stages, int stage, int warp) {
  constexpr bool ONE_FREE = T::PING_PONG && T::W > 1;
  constexpr int BANDS = T::BN / 32, LEFT = T::W == 1 ? BANDS : BANDS * 5 / 4;
  constexpr int FREE = ONE_FREE ? T::STAGES - 1 : T::STAGES;
  constexpr bool APART = ONE_FREE && FREE > 1;  // each warpgroup has a free stage
  static_assert(LEFT * (APART ? 1 : T::M_GROUPS) * 4 * BOX_BYTES <= (ONE_FREE ? 1 : FREE) * T::STAGE_BYTES,
                "the boxes of the last stores do not fit the stages that are free");
  if (!ONE_FREE) ptx::named_barrier_sync(7, T::CONSUMER_THREADS);
  const int free = (stage + (APART ? warp / 4 : 0)) % T::STAGES;
  epilogue.use_fresh_boxes(stages.tiles + (ONE_FREE ? free * T::STAGE_BYTES : 0) +
                           (APART ? warp % 4 : warp) * LEFT * BOX_BYTES);
}

// By all lanes of a warp: it is done with a stage.
template <class T>
__device__ __forceinline__ void release_stage(uint32_t empty, int lane) {
  if (T::CLUSTER_N == 1 && lane == 0) ptx::barrier_arrive(empty);
  if (T::CLUSTER_N > 1 && lane < T::CLUSTER_N) ptx::barrier_arrive_in(lane, empty);
}

template <class T, class Epilogue>
__device__ __forceinline__ void multiply_tiles(const ProductPlan& plan, const CUtensorMap* map, const Stages& stages,
                                               uint32_t staging, int rank, unsigned status) {
  constexpr int W = T::W, BN = T::BN, ACC = BN / 2, BANDS = BN / 32;
  const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0) - 1, lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32 - 4;
  float acc[W][ACC] = {}, sum[ACC];
  const StageOperands<T> operands(stages, group);
  Epilogue epilogue{plan.out, map, staging + warp * 2 * BOX_BYTES, (status & STATUS_WIDE) != 0};
  const typename T::Compensation compensation(status);
  auto first_row = [&](const TileCorner<int>& corner) { return corner.row * T::BM + group * W * 64 + warp % 4 * 16; };
  auto store = [&](int w, int from, int to, const TileCorner<int>& corner) __attribute__((always_inline)) {
    epilogue.store(acc[w], from, to, first_row(corner) + w * 64, corner.col * BN, w < W - 1);
  };

  StageState<T> at;
  TileCorner<int> last{-1, 0};
  if (T::PING_PONG && group == T::M_GROUPS - 1) ptx::named_barrier_arrive(1, 256);
  // Once more after the last tile, for its rows. What is multiplied then goes nowhere: the code that stores is large
  // and slow where it is new, so that a second copy costs more, and a product under a condition is not overlapped.
  for (int tile = blockIdx.x / T::CLUSTER_N;; tile += gridDim.x / T::CLUSTER_N) {
    const bool more = tile < tile_count<T>(plan);
    const TileCorner<int> corner = rasterize<T>(plan, tile, rank);
    if constexpr (Epilogue::USES_STAGES)
      if (!more) use_stages_as_boxes<T>(epilogue, stages, at.stage, warp);
    for (int step = 0; step < plan.k_blocks; ++step, at.next()) {
      if (more) ptx::barrier_wait(stages.full + 8 * at.stage, at.parity);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        if (T::PING_PONG) ptx::named_barrier_sync(1 + group, 256);
        ptx::wgmma_fence();
        operands.multiply(sum, at.stage, w);
        ptx::wgmma_commit();
        if (T::PING_PONG) ptx::named_barrier_arrive(1 + (group + 1) % T::M_GROUPS, 256);
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
        if (step == 1 && w == 0) epilogue.template begin_tile<W, BN>(first_row(corner), corner.col * BN);
        if (W > 1 && w > 0 && step == plan.k_blocks - 1) store(0, 0, BANDS * 3 / 4, corner);
        ptx::wgmma_wait();
        ptx::written(sum);
        if (w == W - 1 && more) release_stage<T>(stages.empty + 8 * at.stage, lane);
#pragma unroll
        for (int i = 0; i < ACC; ++i) acc[w][i] = fmaf(sum[i], compensation.of(step), acc[w][i]);
      }
      if (!more) return epilogue.finish();
    }
    last = corner;
  }
}

template <class T, class Epilogue>
__global__ void __launch_bounds__(T::THREADS, 1)
    persistent_product_kernel(const __grid_constant__ PersistentPlan both, const __grid_constant__ CUtensorMap map,
                              const __grid_constant__ ThreeTermsBehind<T> three) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char memory[];
  __shared__ BlockRange range;
  const ProductPlan& plan = both.product;
  const Stages stages = begin_stages<T>(memory, range, 4 * T::M_GROUPS * T::CLUSTER_N);
  const int rank = blockIdx.x % T::CLUSTER_N;
  constexpr bool THREE_TERMS = has_three_terms<T>;
  const bool falls_back = T::FALLS_BACK && both.fallback.wanted,
             goes_on = (T::FALLS_BACK || THREE_TERMS) && both.goes_on;
  // Only where a kernel of this call follows: blocks of the next would take room before all of these have theirs.
  if (!falls_back) pdl_launch_next();
  ptx::touch(plan);
  __syncthreads();
  if constexpr (T::CLUSTER_N > 1) {
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  pdl_wait();
  if (!terms_wanted(plan.check)) {
    if (!falls_back) return;
    if (threadIdx.x == 0) range.status = *plan.check.previous;
    ptx::registers_down<T::PRODUCER_REGISTERS>();
  } else if (threadIdx.x < 128) {
    ptx::registers_down<T::PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) produce_tiles<T>(plan, stages, rank, range);
    if (goes_on) ptx::named_barrier<6, 128>();  // for racecheck alone, as in single_tile_product.cuh
  } else {
    ptx::registers_up<T::CONSUMER_REGISTERS>();
    const unsigned status = check_range<T>(plan, stages, range, T::STAGES);
    if (!(status & STATUS_ELSEWHERE))
      multiply_tiles<T, Epilogue>(plan, &map, stages, stages.tiles + T::PIPELINE_BYTES, rank, status);
    else if (goes_on) ptx::registers_down<T::PRODUCER_REGISTERS>();
  }
  // No block leaves while another may still copy into it or arrive at its barriers.
  if constexpr (T::CLUSTER_N > 1) ptx::cluster_meet();
  if constexpr (T::FALLS_BACK || THREE_TERMS) {
    if (!goes_on) return;
    __syncthreads();
    if (!(range.status & STATUS_REJECTED) || threadIdx.x >= FALLBACK_THREADS) return;
    ptx::registers_up<T::FALLBACK_REGISTERS>();
    if constexpr (THREE_TERMS) {
      static_assert(T::SHARED_BYTES >= TileBehind<T>::SHARED_BYTES);
      if (three_terms<TileBehind<T>>(three, memory, range)) return;
    }
    if constexpr (T::FALLS_BACK)
      if (falls_back) fall_back<(T::LEFT_OUT > 0)>(both.fallback, memory);
  }
#else
  not_for_this_target();
#endif
}

}  // namespace fl
