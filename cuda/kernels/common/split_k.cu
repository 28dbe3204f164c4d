#include "cuda/kernels/common/split_k.cuh"

#include "core/layout.h"
#include "cuda/kernels/common/epilogue.cuh"
#include "cuda/kernels/common/launch.cuh"

namespace fl {
namespace {

constexpr int SUM_THREADS = 256;

// DOWN threads to an output: each takes every DOWN-th range, and the first adds up what the others have.
template <int DOWN>
__global__ void __launch_bounds__(SUM_THREADS)
    split_k_reduction_kernel(const __grid_constant__ SgemmArgs p, unsigned splits, const float* sums, int64_t ld) {
  constexpr int ACROSS = SUM_THREADS / DOWN;
  __shared__ float partial[DOWN][ACROSS];
  const unsigned across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
  const int64_t output = int64_t{blockIdx.x} * ACROSS + across, row = output / p.n, col = output - row * p.n;
  const bool exists = row < p.m * p.batch;
  const int64_t stride = p.batch * p.m * ld;
  pdl_wait();
  float sum = 0.0f;
  if (exists) {
    const float* from = sums + row * ld + col;
#pragma unroll 8
    for (unsigned s = down; s < splits; s += DOWN) sum += __ldcg(from + s * stride);
  }
  if constexpr (DOWN > 1) {
    partial[down][across] = sum;
    __syncthreads();
    if (down != 0) return;
#pragma unroll
    for (int d = 1; d < DOWN; ++d) sum += partial[d][across];
  }
  if (exists) store(p, row / p.m, row % p.m, col, sum);
}

// The same sums in the same order, four neighbours of a row to a thread: a quarter of the addresses and of the loads.
// Rows of the workspace are whole fours; of the last one not all need exist in C.
struct SplitKQuads {
  unsigned a_row, all;  // fours of a row, and of a range
  bool c_by16;
};

__device__ __forceinline__ void add4(float4& sum, float4 more) {
  sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
}

template <int DOWN>
__global__ void __launch_bounds__(SUM_THREADS)
    split_k_reduction_by4_kernel(const __grid_constant__ SgemmArgs p, unsigned splits, const float* sums,
                                 const __grid_constant__ SplitKQuads quads) {
  constexpr unsigned ACROSS = SUM_THREADS / DOWN;
  __shared__ float4 partial[DOWN][DOWN > 1 ? ACROSS : 1];
  const unsigned across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
  const unsigned quad = blockIdx.x * ACROSS + across, row = quad / quads.a_row, col = (quad - row * quads.a_row) * 4;
  const bool exists = quad < quads.all;
  pdl_wait();
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
  if (exists) {
    const float4* from = reinterpret_cast<const float4*>(sums) + quad;
#pragma unroll 8
    for (unsigned s = down; s < splits; s += DOWN) add4(sum, __ldcg(from + s * quads.all));
  }
  if constexpr (DOWN > 1) {
    partial[down][across] = sum;
    __syncthreads();
    if (down != 0) return;
#pragma unroll
    for (int d = 1; d < DOWN; ++d) add4(sum, partial[d][across]);
  }
  if (!exists) return;
  const auto rows = static_cast<unsigned>(p.m);
  const float four[4] = {sum.x, sum.y, sum.z, sum.w};
  float* c = p.c.data + int64_t{row / rows} * p.c.bs + int64_t{row % rows} * p.c.rs + col;
  const int exist = static_cast<int>(p.n - col);
  if (quads.c_by16) return epilogue(p).store4(c, four, exist);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < exist) epilogue(p).store(c + i, four[i]);
}

// By fours where rows are whole fours, from so many outputs on: with fewer there are too few threads. And what 32 bits
// can count.
bool reduces_by4(const SgemmArgs& p, const SplitKPlan& plan) {
  const bool fours = plan.ld % 4 == 0 && p.c.cs == 1;
  return fours && p.m * p.n * p.batch >= 50000 && plan.splits * plan.stride(p) < int64_t{1} << 32;
}

}  // namespace

void reduce_split_k(const SgemmArgs& p, const SplitKPlan& plan, const Context& ctx) {
  if (plan.splits == 1) return;
  const auto* const sums = static_cast<const float*>(ctx.workspace);
  const bool many = plan.splits > 16;
  const auto ranges = static_cast<unsigned>(plan.splits);
  const unsigned each = SUM_THREADS / (many ? 8 : 1);  // outputs of a block, or fours of them
  if (reduces_by4(p, plan)) {
    const auto a_row = static_cast<unsigned>(plan.ld / 4);
    const SplitKQuads quads{a_row, a_row * static_cast<unsigned>(p.m * p.batch), aligned16(p.c)};
    const auto blocks = static_cast<unsigned>(ceil_div(int64_t{quads.all}, each));
    many ? launch_kernel<split_k_reduction_by4_kernel<8>>({blocks, SUM_THREADS}, ctx, p, ranges, sums, quads)
         : launch_kernel<split_k_reduction_by4_kernel<1>>({blocks, SUM_THREADS}, ctx, p, ranges, sums, quads);
    return;
  }
  const auto blocks = static_cast<unsigned>(ceil_div(p.m * p.n * p.batch, each));
  many ? launch_kernel<split_k_reduction_kernel<8>>({blocks, SUM_THREADS}, ctx, p, ranges, sums, plan.ld)
       : launch_kernel<split_k_reduction_kernel<1>>({blocks, SUM_THREADS}, ctx, p, ranges, sums, plan.ld);
}

}  // namespace fl
