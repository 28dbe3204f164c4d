// SGEMV on contiguous columns, large, and on a few long rows: blocks of a tile of the outputs and a range of the
// columns, all of them resident at once. The sums of a range go to the workspace, and a small kernel adds them up in
// ascending order; with enough outputs to fill the device there is one range and one launch.
//
// 32-byte sectors: reads 100 % if the columns start on a sector; a warp reads 512 neighbouring bytes. Bound: memory.
// Eight loads of 16 bytes are in flight per thread, 128 KiB per multiprocessor.
//
// The small kernel starts while the large one runs and waits for it. To have the last block of a tile add up instead
// would need counters that are zero when the kernel starts: one more launch, or memory that outlives a call.
#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/sgemv/column_tiles.cuh"
#include "cuda/kernels/sgemv/gemv_other_order.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr int UNROLL = 8;

struct SplitGrid {
  RowGrid rows;
  SplitColumnsPlan plan;
};

template <int V, int LC, int THREADS, bool RESIDENT, class T>
__device__ __forceinline__ void split_columns_of_block(const SgemvArgs& p, const SplitGrid& of, unsigned block,
                                                       float* sums, float fraction) {
  const auto& [grid, plan] = of;
  pdl_wait();
  const unsigned tiles = grid.per_batch * grid.batch, split = block / tiles, tile = block % tiles;
  const RowBlock at = grid.block(p, tile);
  const int64_t first = int64_t{split} * plan.columns, rest = p.n - first;
  float acc[V] = {};
  read_tile<T, V, LC, UNROLL>(acc, p, at, first, THREADS / LC, first + at_most(rest, plan.columns),
                              MatrixLoad<RESIDENT>(fraction));
  if (plan.splits > 1) pdl_launch_next();
  sum_tile<V, LC, THREADS>(acc, [&](unsigned c, float sum) {
    if (at.row + c >= p.m) return;
    if (plan.splits == 1) return store(p, at.y, at.row + c, sum);
    const int64_t problem = tile / grid.per_batch;
    sums[(split * p.batch + problem) * p.m + at.row + c] = sum;
  });
}

template <int V, int LC, int THREADS, bool RESIDENT, class T>
__global__ void __launch_bounds__(THREADS, most_columns_blocks<THREADS>)
    split_columns_kernel(SgemvArgs p, SplitGrid grid, float* sums, float fraction) {
  split_columns_of_block<V, LC, THREADS, RESIDENT, T>(p, grid, blockIdx.x, sums, fraction);
}

constexpr int ACROSS = 32, DOWN = 8;

__global__ void __launch_bounds__(ACROSS* DOWN) add_splits_kernel(SgemvArgs p, int splits, const float* sums) {
  __shared__ float partial[DOWN][ACROSS];
  pdl_wait();
  const int64_t outputs = p.m * p.batch;
  const int64_t output = int64_t{blockIdx.x} * ACROSS + threadIdx.x % ACROSS;
  const unsigned down = threadIdx.x / ACROSS;
  float sum = 0.0f;
  if (output < outputs) {
#pragma unroll 8
    for (int s = down; s < splits; s += DOWN) sum += __ldcg(sums + s * outputs + output);
  }
  partial[down][threadIdx.x % ACROSS] = sum;
  __syncthreads();
  if (down != 0 || output >= outputs) return;
#pragma unroll
  for (int d = 1; d < DOWN; ++d) sum += partial[d][threadIdx.x];
  store(p, p.y.data + output / p.m * p.y.bs, output % p.m, sum);
}

void add_splits(const SgemvArgs& p, const Context& ctx, int splits) {
  const unsigned blocks = static_cast<unsigned>(ceil_div(p.m * p.batch, ACROSS));
  launch_kernel<add_splits_kernel>({blocks, ACROSS * DOWN}, ctx, p, splits, static_cast<const float*>(ctx.workspace));
}

// The ranges of long rows are a batch: where rows are few, a block or a cluster to each leaves most of the device idle.
void launch_rows(const SgemvArgs& p, const Context& ctx, const SplitRowsPlan& plan) {
  float* sums = static_cast<float*>(ctx.workspace);
  SgemvArgs part = p;
  part.alpha = 1.0f, part.beta = 0.0f;
  part.n = plan.length, part.batch = plan.splits, part.a.bs = part.x.bs = plan.length, part.y = {sums, 1, p.m};
  sgemv_long_rows(part, ctx);
  if (plan.left > 0) {
    const int64_t done = p.n - plan.left;
    part.n = plan.left, part.batch = 1, part.a.data += done, part.x.data += done, part.y.data += plan.splits * p.m;
    sgemv_long_rows(part, ctx);
  }
  add_splits(p, ctx, plan.sums());
}

template <int V, int LC, int THREADS, class T, bool RESIDENT = false>
void launch_split(const SgemvArgs& p, const Context& ctx, const SplitColumnsPlan& plan, float fraction = 0.0f) {
  const SplitGrid grid{RowGrid(p, V * LC), plan};
  const LaunchShape shape{grid.rows.blocks() * unsigned(plan.splits), THREADS};
  if constexpr (std::is_same_v<T, float>) {  // in a list all columns are one range
    constexpr auto body = split_columns_of_block<V, LC, THREADS, false, T>;
    constexpr int blocks = most_columns_blocks<THREADS>;
    if (keep<group_kernel<body, THREADS, blocks, SplitGrid, SgemvArgs, nullptr, 0>>(shape, ctx, p, grid)) return;
  }
  float* sums = static_cast<float*>(ctx.workspace);
  launch_kernel<split_columns_kernel<V, LC, THREADS, RESIDENT, T>>(shape, ctx, p, grid, sums, fraction);
  if (plan.splits > 1) add_splits(p, ctx, plan.splits);
}

template <int V, int LC, int THREADS>
void launch(const SgemvArgs& p, const Context& ctx, const SplitColumnsPlan& plan) {
  with_type(p.stored[0], [&](auto number) { launch_split<V, LC, THREADS, decltype(number)>(p, ctx, plan); });
}

// Blocks of 1024 threads go without: 262144 x 128 transposed took as long with a part kept in L2 as without.
template <int LC>
void launch_large(const SgemvArgs& p, const Context& ctx, const SplitColumnsPlan& plan) {
  const float fraction = l2_resident_fraction(p, ctx);
  fraction > 0.0f ? launch_split<4, LC, 256, float, true>(p, ctx, plan, fraction) : launch<4, LC, 256>(p, ctx, plan);
}

}  // namespace

void sgemv_split_columns(const SgemvArgs& p, const Context& ctx) {
  if (p.a.cs == 1) {
    const SplitRowsPlan rows = split_rows_plan(p);
    return rows.splits > 0 ? launch_rows(p, ctx, rows) : sgemv_long_rows(p, ctx);
  }
  const SplitColumnsPlan plan = split_columns_plan(p);
  switch (plan.outputs) {
    case 512: return launch_large<128>(p, ctx, plan);
    case 256: return launch_large<64>(p, ctx, plan);
    case 128: return plan.vectors ? launch<4, 32, 1024>(p, ctx, plan) : launch<1, 128, 256>(p, ctx, plan);
    case 32: return launch<1, 32, 512>(p, ctx, plan);
    default: return launch<1, 8, 512>(p, ctx, plan);
  }
}

}  // namespace fl
