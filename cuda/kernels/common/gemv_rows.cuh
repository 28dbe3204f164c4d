// What the row kernels of SGEMV share: the numbering of a launch, the share of a lane, the end of a row. The loop over
// the columns is what they differ in, and stands in their own files.
//
// A warp is cut into 32 / L groups of L lanes, and each group takes R rows at once: R independent loads in flight per
// lane and step, and one load of x serves R rows. Group g's row r is row r * 32 / L + g of the warp, so that one load
// instruction of the warp covers neighbouring rows.
#pragma once

#include "core/layout.h"
#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/halves.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/reduce.cuh"

namespace fl {

// Of 256 threads. Asked for less, the compiler aims at 32 registers and waits for one load before it issues the next.
constexpr int BLOCKS_PER_SM = 5;

// Where a block works: the operands of its problem and its first row of y.
struct RowBlock {
  const float* a;
  const float* x;
  float* y;
  int64_t row;
};

// Blocks of rows of all batches, numbered on grid.x alone (TileGrid says why). The shortest of these kernels last a
// microsecond, and a division takes a few percent of that: a single problem does without.
struct RowGrid {
  unsigned batch, per_batch, rows;  // rows: of y, per block

  RowGrid() = default;
  RowGrid(const SgemvArgs& p, unsigned rows)
      : batch(static_cast<unsigned>(p.batch)), per_batch(static_cast<unsigned>(ceil_div(p.m, rows))), rows(rows) {}

  unsigned blocks() const { return per_batch * batch; }

  __device__ __forceinline__ RowBlock block(const SgemvArgs& p) const { return block(p, blockIdx.x); }
  __device__ __forceinline__ RowBlock block(const SgemvArgs& p, unsigned number) const {
    if (batch == 1) return {p.a.data, p.x.data, p.y.data, int64_t{number} * rows};
    const int64_t b = number / per_batch, in_batch = number % per_batch;
    return {p.a.data + b * p.a.bs, p.x.data + b * p.x.bs, p.y.data + b * p.y.bs, in_batch * rows};
  }
};

struct ClusterGrid {
  RowGrid rows;
  unsigned cluster;  // blocks that share rows
};

// Eight warps a block, fewer if one problem has no work for them: a batch of small problems must not launch idle warps.
inline int warps_per_block(const SgemvArgs& p, int rows_per_warp) {
  const int64_t warps = ceil_div(p.m, rows_per_warp);
  return warps < 8 ? static_cast<int>(warps) : 8;
}

// x may be read as float4. A's own alignment is a matter of the row's legality.
inline bool x_is_vector(const SgemvArgs& p) { return p.x.inc == 1 && aligned<4>(p.x.data, p.x.bs); }

// Fewer rows than warps to keep the device busy, and long ones: a block of 32 warps then shares each row.
// Decides the order of a sum by the number of multiprocessors: bits may differ between devices that differ in it.
inline bool few_long_rows(const SgemvArgs& p, const Context& ctx) {
  return p.n >= 4096 && p.m * p.batch <= 8 * int64_t(ctx.sm_count);
}

// How many of `most` there are, where `left` remain.
__device__ __forceinline__ unsigned at_most(int64_t left, unsigned most) { return left < most ? unsigned(left) : most; }

// The R rows of one lane. Past the last row that one is read again and the result is not stored: a condition on a load
// costs more, and makes the compiler wait for one load before it issues the next.
template <int L, int R, class T = float>
struct LaneRows {
  static constexpr int PER_WARP = R * 32 / L;
  const T* a[R];
  unsigned group, existing;  // the lane's group in the warp; how many rows the warp has

  __device__ __forceinline__ LaneRows(const SgemvArgs& p, const RowBlock& at, unsigned lane)
      : group(lane / L), existing(at_most(p.m - at.row, PER_WARP)) {
    const T* first = place_of<T>(p.stored[0], at.a) + at.row * p.a.rs;
#pragma unroll
    for (int r = 0; r < R; ++r) a[r] = first + min(r * (32 / L) + group, existing - 1) * p.a.rs;
  }
};

// Adds up the groups of a warp and stores its rows.
template <int L, int R, class T>
__device__ __forceinline__ void finish_rows(const SgemvArgs& p, const RowBlock& at, const LaneRows<L, R, T>& rows,
                                            float (&acc)[R], unsigned lane) {
  using Sum = GroupSum<L, R>;
  sum_over_group<L, R>(acc, lane);
  const unsigned l = lane % L;
  if (l % Sum::spread != 0) return;
#pragma unroll
  for (int i = 0; i < Sum::kept; ++i) {
    const unsigned row = (l / Sum::spread * Sum::kept + i) * (32 / L) + rows.group;
    if (row < rows.existing) store(p, at.y, at.row + row, acc[i]);
  }
}

// The same for one row that all 32 warps of a block have shared.
template <class T>
__device__ __forceinline__ void finish_shared_row(const SgemvArgs& p, const RowBlock& at,
                                                  const LaneRows<32, 1, T>& rows, float (&acc)[1], unsigned lane) {
  __shared__ float partial[32];
  const unsigned warp = threadIdx.x / 32;
  sum_over_group<32, 1>(acc, lane);
  if (lane == 0) partial[warp] = acc[0];
  __syncthreads();
  if (warp != 0) return;
  acc[0] = partial[lane];
  finish_rows(p, at, rows, acc, lane);
}

__device__ __forceinline__ float dot4(float4 a, float4 x, float acc) {
  return fmaf(a.w, x.w, fmaf(a.z, x.z, fmaf(a.y, x.y, fmaf(a.x, x.x, acc))));
}

// Four elements of x from `x` on. X4: they are neighbours and aligned.
template <bool X4>
__device__ __forceinline__ float4 load_x4(const float* x, int64_t inc) {
  if constexpr (X4) return __ldg(reinterpret_cast<const float4*>(x));
  return make_float4(__ldg(x), __ldg(x + inc), __ldg(x + 2 * inc), __ldg(x + 3 * inc));
}

// The up to three elements that end a row after its last whole float4: lane t of the row takes the t-th.
template <int L, int R, class T>
__device__ __forceinline__ void add_tail(const SgemvArgs& p, const RowBlock& at, const LaneRows<L, R, T>& rows,
                                         unsigned t, float (&acc)[R]) {
  const unsigned tail = p.n & 3;
  if (t >= tail) return;
  const int64_t j = p.n - tail + t;
  const float x_frag = __ldg(at.x + j * p.x.inc);
#pragma unroll
  for (int r = 0; r < R; ++r) acc[r] = fmaf(load1(rows.a[r] + j), x_frag, acc[r]);
}

}  // namespace fl
