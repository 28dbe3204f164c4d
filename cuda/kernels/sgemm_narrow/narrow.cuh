// What both kernels of narrow products share: where a block works, the columns of the right operand that it keeps in
// shared memory, and the way of its sums to C.
#pragma once

#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/grouped.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/split_k.cuh"
#include "plan/narrow_plan.h"

namespace fl {

// What one block works on.
struct NarrowBlock {
  int64_t batch = 0, split = 0, row, column, k;  // the first of each
  int count, columns;                            // of k, and those of the panel that exist

  __device__ __forceinline__ NarrowBlock(const SgemmArgs& p, const NarrowPlan& plan, unsigned block) {
    const auto row_blocks = static_cast<unsigned>(plan.row_blocks), panels = static_cast<unsigned>(plan.panels);
    unsigned above = 0, panel = 0, outer = 0;
    if (p.batch * panels * plan.splits > 1) {  // divisions take a few percent of the shortest products
      above = block / row_blocks, outer = above / panels, panel = above % panels;
      batch = outer / plan.splits, split = outer % plan.splits;
    }
    row = int64_t{block - above * row_blocks} * plan.block_rows;
    column = int64_t{panel} * plan.panel_columns;
    k = split * plan.split_k;
    count = static_cast<int>(min(plan.split_k, p.k - k));
    columns = static_cast<int>(min(p.n - column, int64_t{plan.panel_columns}));
  }
};

__device__ __forceinline__ void add_four(float* sums, float a, float4 x) {
  sums[0] = fmaf(a, x.x, sums[0]);
  sums[1] = fmaf(a, x.y, sums[1]);
  sums[2] = fmaf(a, x.z, sums[2]);
  sums[3] = fmaf(a, x.w, sums[3]);
}

// A block's k of the right operand, FOURS times four columns. Past the last column that one is read again, and its sums
// are not stored; past the last k there are zeros.
template <int FOURS, int THREADS>
struct NarrowRight {
  static constexpr int COLUMNS = 4 * FOURS, KC = narrow_most_k(FOURS);

  static __device__ __forceinline__ void load(float4* to, const SgemmArgs& p, const NarrowBlock& at) {
    const float* const first = p.b.data + at.batch * p.b.bs + at.k * p.b.rs + at.column * p.b.cs;
    const int padded = (at.count + NARROW_UNIT - 1) / NARROW_UNIT * NARROW_UNIT;
#pragma unroll 1
    for (int k = threadIdx.x; k < padded; k += THREADS) {
      const bool exists = k < at.count;
      const float* from = first + (exists ? k : 0) * p.b.rs;
      float v[COLUMNS];
#pragma unroll
      for (int col = 0; col < COLUMNS; ++col) {
        v[col] = __ldg(from);
        if (col + 1 < at.columns) from += p.b.cs;
      }
#pragma unroll
      for (int col = 0; col < COLUMNS; ++col) v[col] = exists ? v[col] : 0.0f;
#pragma unroll
      for (int f = 0; f < FOURS; ++f) to[f * KC + k] = make_float4(v[4 * f], v[4 * f + 1], v[4 * f + 2], v[4 * f + 3]);
    }
  }
};

// Adds up what `ranges` of k have of each output of a block of `rows`, sum_of(range, row, col), in ascending order,
// neighbouring threads along what is contiguous. Where other blocks have more of k the sums go to the workspace,
// [split][batch][m][n].
template <int COLUMNS, int THREADS, class SumOf>
__device__ __forceinline__ void store_narrow(const SgemmArgs& p, const NarrowPlan& plan, const NarrowBlock& at,
                                             float* workspace, int rows, int ranges, const SumOf& sum_of) {
  const bool along_rows = plan.splits > 1 || p.c.cs == 1;
#pragma unroll 1
  for (unsigned output = threadIdx.x; output < unsigned(rows) * COLUMNS; output += THREADS) {
    const int row = along_rows ? output / COLUMNS : output % unsigned(rows);
    const int col = along_rows ? output % COLUMNS : output / unsigned(rows);
    if (at.row + row >= p.m || col >= at.columns) continue;
    float sum = 0.0f;
#pragma unroll 16
    for (int range = 0; range < ranges; ++range) sum += sum_of(range, row, col);
    if (plan.splits == 1) store(p, at.batch, at.row + row, at.column + col, sum);
    else workspace[((at.split * p.batch + at.batch) * p.m + at.row + row) * p.n + at.column + col] = sum;
  }
}

template <auto KERNEL, auto BODY, int THREADS, int BLOCKS>
void launch_narrow(const SgemmArgs& p, const NarrowPlan& plan, const Context& ctx) {
  const LaunchShape shape{static_cast<unsigned>(plan.blocks(p)), THREADS};
  if (keep<group_kernel<BODY, THREADS, BLOCKS, NarrowPlan, SgemmArgs, nullptr>>(shape, ctx, p, plan)) return;
  launch_kernel<KERNEL>(shape, ctx, p, plan, static_cast<float*>(ctx.workspace));
  reduce_split_k(p, {plan.splits, p.n}, ctx);
}

}  // namespace fl
