// What a warpgroup does with its part of the k of one tile: producer, products, exchange with other parts, and the
// direct store. For products of single tiles, of split-K, and of three terms behind two.
#pragma once

#include "cuda/kernels/sgemm_accurate/wgmma/pipeline.cuh"

namespace fl {

struct SingleProduct {
  ProductPlan product;
  bool c_by16;            // rows of C start at multiples of 16 bytes
  bool mirrored = false;  // of three terms behind two: C is symmetric, its lower triangle is computed and mirrored
};

// The blocks of 64 k that a block of threads takes, and which warpgroup this is.
template <class T>
struct WarpgroupWork {
  int rank, from, count, m_group, k_group, part;
  __device__ __forceinline__ explicit WarpgroupWork(int k_blocks, int rank = blockIdx.x % T::CLUSTER_K,
                                                    int ranks = T::CLUSTER_K)
      : rank(rank) {
    from = k_blocks * rank / ranks;
    count = k_blocks * (rank + 1) / ranks - from;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0) - 1;
    m_group = T::M_GROUPS == 1 ? 0 : group % T::M_GROUPS, k_group = T::K_GROUPS == 1 ? 0 : group / T::M_GROUPS;
    part = rank * T::K_GROUPS + k_group;
  }
};

// Four sums next to each other in a row of C. Vector i of a thread: band i / 4 of 32 columns, the upper or lower eight
// of its warp's 16 rows, the left or right half of the band. See SplitThreadMap.
template <class T>
struct RowVector {
  int row, col;
  __device__ __forceinline__ RowVector(const TileCorner<int>& corner, const WarpgroupWork<T>& work, int i) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    row = corner.row * T::BM + work.m_group * 64 + warp * 16 + lane / 4 + i / 2 % 2 * 8;
    col = corner.col * T::BN + i / 4 * 32 + i % 2 * 16 + lane % 4 * 4;
  }
  static __device__ __forceinline__ float4 of(const float (&acc)[T::BN / 2], int i) {
    const int at = i / 4 * 16 + i / 2 % 2 * 2 + i % 2 * 8;
    return {acc[at], acc[at + 1], acc[at + 4], acc[at + 5]};
  }
};

// The direct store of the sums that a thread's part stores. The scales are read before the product; many of them would
// not fit the registers beside the sums (spills of 170 bytes at 64x128), and are only brought near.
template <class T>
struct DirectEpilogue {
  const SingleProduct& plan;
  const WarpgroupWork<T>& work;
  TileCorner<int> corner;
  struct Scale {
    int down;
    int4 across;
  };
  static constexpr bool LOADED = T::VECTORS <= 4;
  Scale loaded[LOADED ? T::VECTORS : 1];

  __device__ __forceinline__ DirectEpilogue(const SingleProduct& plan, const WarpgroupWork<T>& work,
                                            const TileCorner<int>& corner)
      : plan(plan), work(work), corner(corner) {
#pragma unroll
    for (int i = 0; i < T::VECTORS; ++i) {
      const RowVector<T> at(corner, work, work.part * T::VECTORS + i);
      if constexpr (LOADED) {
        loaded[i] = scale(at);
      } else {
        ptx::prefetch_l1(plan.product.out.a_exponents + at.row);
        ptx::prefetch_l1(plan.product.out.b_exponents + at.col);
      }
    }
  }

  __device__ __forceinline__ void write(const float4 (&sums)[T::VECTORS], bool wide) const {
    const AccurateEpilogue& out = plan.product.out;
    const bool full = (corner.row + 1) * T::BM <= out.m && (corner.col + 1) * T::BN <= out.n;
    // Nearly all tiles run the few instructions of the first branch alone: it is new code for every block.
    if (full && (plan.c_by16 || columns()) && !wide && out.beta == 0.0f && !mirrored()) write_full(sums);
    else write_any(sums, wide || T::BEHIND);
  }

 private:
  __device__ __forceinline__ bool columns() const { return T::LEFT_OUT == 1 && plan.product.out.by_columns; }
  __device__ __forceinline__ bool mirrored() const { return T::BEHIND && plan.mirrored; }
  __device__ __forceinline__ Scale scale(const RowVector<T>& at) const {
    const int* const down = plan.product.out.a_exponents + at.row;
    const auto* const across = reinterpret_cast<const int4*>(plan.product.out.b_exponents + at.col);
    if constexpr (T::BEHIND) return {*down, *across};  // written by this launch
    else return {__ldg(down), __ldg(across)};
  }

  __device__ __forceinline__ void write_full(const float4 (&sums)[T::VECTORS]) const {
    const AccurateEpilogue& out = plan.product.out;
#pragma unroll
    for (int i = 0; i < T::VECTORS; ++i) {
      const RowVector<T> at(corner, work, work.part * T::VECTORS + i);
      const Scale e = LOADED ? loaded[LOADED ? i : 0] : scale(at);
      auto result = [&](float sum, int across) { return sum * power_of_two(-e.down - across) * out.alpha; };
      const float4 x{result(sums[i].x, e.across.x), result(sums[i].y, e.across.y), result(sums[i].z, e.across.z),
                     result(sums[i].w, e.across.w)};
      if (columns()) write_column(out.column(at.row, at.col), x, out.ldc, 4);
      else *reinterpret_cast<float4*>(out.c + at.row * out.ldc + at.col) = x;
    }
  }

  __device__ __forceinline__ void write_any(const float4 (&sums)[T::VECTORS], bool wide) const {
    const AccurateEpilogue& out = plan.product.out;
    auto result = [&](float sum, int e, float old) {
      const float x = (wide ? scale_wide(sum, -e) : sum * power_of_two(-e)) * out.alpha;
      return out.beta == 0.0f ? x : fmaf(out.beta, old, x);
    };
#pragma unroll
    for (int i = 0; i < T::VECTORS; ++i) {
      const RowVector<T> at(corner, work, work.part * T::VECTORS + i);
      const Scale e = LOADED ? loaded[LOADED ? i : 0] : scale(at);
      if (at.row >= out.m) continue;
      const int exist = mirrored() ? min(out.n - at.col, at.row - at.col + 1) : out.n - at.col;
      const float4 old = out.beta == 0.0f ? float4{} : out.addend.four(at.row, at.col, exist);
      const float4 x{result(sums[i].x, e.down + e.across.x, old.x), result(sums[i].y, e.down + e.across.y, old.y),
                     result(sums[i].z, e.down + e.across.z, old.z), result(sums[i].w, e.down + e.across.w, old.w)};
      if (columns() || mirrored()) write_column(out.column(at.row, at.col), x, out.ldc, exist);
      if (!columns()) write_vector(out.c + at.row * out.ldc + at.col, x, plan.c_by16, exist);
    }
  }
};

template <class T>
__device__ __forceinline__ void produce_part(const ProductPlan& plan, const TileCorner<int>& corner,
                                             const Stages& stages, const WarpgroupWork<T>& work,
                                             const RangeShared& range) {
  TileProducer<T> source(plan, corner, work.from);
  StageState<T> at;
  for (int i = 0; i < work.count; ++i, at.next()) {
    if (i == T::STAGES) {
      ptx::barrier_wait(stages.checked, 0);
      if (range.status & STATUS_ELSEWHERE) return;
    }
    source.fill(stages, 0, at);
  }
}

// APART: the products of second terms have sums of their own, which count `second_unit` times.
template <class T, bool APART = false>
__device__ __forceinline__ void multiply_part(float (&acc)[T::BN / 2], const Stages& stages,
                                              const WarpgroupWork<T>& work, typename T::Compensation compensation,
                                              float second_unit = 1) {
  // The stages of this warpgroup: those of the whole block would be a number of its own for each warp, and the compiler
  // would move every address from there to where the products want it.
  const Stages own{stages.tiles + work.k_group * T::STAGE_BYTES, stages.full + 8 * work.k_group,
                   stages.empty + 8 * work.k_group, 0};
  const StageOperands<T> operands(own, work.m_group);
  constexpr int FIRST = T::S::PRODUCTS - 1;  // the product of first terms
  float sum[T::BN / 2], second[APART ? T::BN / 2 : 1] = {};
  StageState<T> at;
  if (T::PING_PONG && work.k_group == 1) ptx::named_barrier_arrive(2, 256);
  for (int i = 0; i < work.count - work.k_group; i += T::K_GROUPS) {
    ptx::barrier_wait(own.full + 8 * at.stage, at.parity);
    if (T::PING_PONG) ptx::named_barrier_sync(2 + work.k_group, 256);
    ptx::wgmma_fence();
    if constexpr (APART) {
      operands.template multiply<T::LEFT_OUT, FIRST>(second, at.stage, 0, false);
      operands.template multiply<FIRST>(sum, at.stage, 0);
    } else {
      operands.multiply(sum, at.stage, 0);
    }
    ptx::wgmma_commit();
    if (T::PING_PONG) ptx::named_barrier_arrive(3 - work.k_group, 256);
    ptx::wgmma_wait();
    ptx::written(sum);
    if constexpr (APART) ptx::written(second);
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(own.empty + 8 * at.stage);
#pragma unroll
    for (int j = 0; j < T::BN / 2; ++j) acc[j] = fmaf(sum[j], compensation.now(), acc[j]);
    compensation.next();
#pragma unroll
    for (int j = 0; j < T::K_GROUPS; ++j) at.next();
  }
  if constexpr (APART)
#pragma unroll
    for (int j = 0; j < T::BN / 2; ++j) acc[j] = fmaf(second[j], second_unit, acc[j]);
}

// The same with two sums: the tensor cores work on the next one while one is added up, where stages enough are filled.
// With two stages, of 128x64, 1024 took 40.6 us instead of 34.9.
template <class T>
__device__ __forceinline__ void multiply_part_ahead(float (&acc)[T::BN / 2], const Stages& stages,
                                                    const WarpgroupWork<T>& work,
                                                    typename T::Compensation compensation) {
  const StageOperands<T> operands(stages, work.m_group);
  float one[T::BN / 2], other[T::BN / 2];
  StageState<T> at, done;
  const auto begin = [&](float(&sum)[T::BN / 2]) __attribute__((always_inline)) {
    ptx::barrier_wait(stages.full + 8 * at.stage, at.parity);
    ptx::wgmma_fence();
    operands.multiply(sum, at.stage, 0);
    ptx::wgmma_commit();
    at.next();
  };
  const auto add = [&](float(&sum)[T::BN / 2]) __attribute__((always_inline)) {
    ptx::written(sum);
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(stages.empty + 8 * done.stage);
    done.next();
#pragma unroll
    for (int j = 0; j < T::BN / 2; ++j) acc[j] = fmaf(sum[j], compensation.now(), acc[j]);
  };
  begin(one);
  for (int left = work.count - 1; left > 1; left -= 2) {
    begin(other), ptx::wgmma_wait<1>(), add(one);
    begin(one), ptx::wgmma_wait<1>(), add(other);
  }
  if (work.count % 2 == 0) begin(other), ptx::wgmma_wait<1>(), add(one), ptx::wgmma_wait(), add(other);
  else ptx::wgmma_wait(), add(one);
}

// Of two parts the one that keeps the upper half of the sums is known when the kernel runs. Selections: with branches
// the compiler puts all sums into memory and finds them there by an index.
template <class T>
__device__ __forceinline__ void exchange_halves(float4 (&mine)[T::VECTORS], const float (&acc)[T::BN / 2],
                                                uint32_t received, const WarpgroupWork<T>& work) {
  const bool upper = work.part == 1;
  auto pick = [](bool second, const float4& x, const float4& y) {
    return float4{second ? y.x : x.x, second ? y.y : x.y, second ? y.z : x.z, second ? y.w : x.w};
  };
  uint32_t to = received + (upper ? 0 : T::K_GROUPS - 1) * T::PART_BYTES + threadIdx.x % T::PART_THREADS * 16;
  if constexpr (T::CLUSTER_K > 1) to = ptx::address_in(!upper, to);
#pragma unroll
  for (int i = 0; i < T::VECTORS; ++i, to += T::PART_THREADS * 16) {
    const float4 low = RowVector<T>::of(acc, i), high = RowVector<T>::of(acc, T::VECTORS + i);
    mine[i] = pick(upper, low, high);
    if constexpr (T::CLUSTER_K > 1) ptx::store4_cluster(to, pick(upper, high, low));
    else ptx::store4(to, pick(upper, high, low));
  }
}

// Keeps the sums that this part stores in `mine` and sends the rest to the parts that store them. Every block has
// begun.
template <class T>
__device__ __forceinline__ void exchange_parts(float4 (&mine)[T::VECTORS], const float (&acc)[T::BN / 2],
                                               uint32_t received, const WarpgroupWork<T>& work) {
  const unsigned thread = threadIdx.x % T::PART_THREADS;
#pragma unroll
  for (int owner = 0; owner < T::PARTS; ++owner) {
    if (owner == work.part) {
#pragma unroll
      for (int i = 0; i < T::VECTORS; ++i) mine[i] = RowVector<T>::of(acc, owner * T::VECTORS + i);
      continue;
    }
    const int sender = (work.part - owner + T::PARTS) % T::PARTS - 1 + owner % T::K_GROUPS * (T::PARTS - 1);
    uint32_t to = received + sender * T::PART_BYTES + thread * 16;
    if constexpr (T::CLUSTER_K > 1) to = ptx::address_in(owner / T::K_GROUPS, to);
#pragma unroll
    for (int i = 0; i < T::VECTORS; ++i) {
      const float4 x = RowVector<T>::of(acc, owner * T::VECTORS + i);
      if constexpr (T::CLUSTER_K > 1) ptx::store4_cluster(to + i * T::PART_THREADS * 16, x);
      else ptx::store4(to + i * T::PART_THREADS * 16, x);
    }
  }
}

template <class T>
__device__ __forceinline__ void add_parts(float4 (&mine)[T::VECTORS], uint32_t received, const WarpgroupWork<T>& work) {
  const uint32_t from = received + work.k_group * (T::PARTS - 1) * T::PART_BYTES + threadIdx.x % T::PART_THREADS * 16;
#pragma unroll
  for (int sender = 0; sender < T::PARTS - 1; ++sender)
#pragma unroll
    for (int i = 0; i < T::VECTORS; ++i) {
      const float4 x = ptx::load4(from + sender * T::PART_BYTES + i * T::PART_THREADS * 16);
      mine[i].x += x.x, mine[i].y += x.y, mine[i].z += x.z, mine[i].w += x.w;
    }
}

// Of split-K: the sums of a part, to the workspace.
template <class T>
__device__ __forceinline__ void store_sums(const SplitKSums& plan, const TileCorner<int>& corner,
                                           const WarpgroupWork<T>& work, const float (&acc)[T::BN / 2]) {
  float* const to = plan.sums + work.part * plan.part_stride;
#pragma unroll
  for (int i = 0; i < T::VECTORS; ++i) {
    const RowVector<T> at(corner, work, i);
    *reinterpret_cast<float4*>(to + at.row * plan.ld + at.col) = RowVector<T>::of(acc, i);
  }
}

// `to`: where sums go if there are several parts in other blocks.
template <class T>
__device__ __forceinline__ void multiply_single(const SingleProduct& plan, const TileCorner<int>& corner,
                                                const Stages& stages, uint32_t received, const WarpgroupWork<T>& work,
                                                unsigned status, const SplitKSums& to = {}) {
  const DirectEpilogue<T> epilogue(plan, work, corner);
  float acc[T::BN / 2] = {};
  if constexpr (T::S::KIND == Terms::bf16x6 && !T::BEHIND && T::STAGES == 4)
    multiply_part_ahead<T>(acc, stages, work, typename T::Compensation(status));
  else if (T::MAY_BE_APART && plan.product.second_unit != 1)
    multiply_part<T, T::MAY_BE_APART>(acc, stages, work, typename T::Compensation(status), plan.product.second_unit);
  else multiply_part<T>(acc, stages, work, typename T::Compensation(status));
  if (T::BEHIND && to.parts > 1) return store_sums<T>(to, corner, work, acc);
  float4 mine[T::VECTORS];
  if constexpr (T::PARTS == 2) exchange_halves<T>(mine, acc, received, work);
  else exchange_parts<T>(mine, acc, received, work);
  if constexpr (T::PARTS > 1) {
    if constexpr (T::CLUSTER_K > 1) ptx::cluster_meet();
    else ptx::named_barrier_sync(7, T::CONSUMER_THREADS);
    add_parts<T>(mine, received, work);
  }
  epilogue.write(mine, status & STATUS_WIDE);
}

}  // namespace fl
