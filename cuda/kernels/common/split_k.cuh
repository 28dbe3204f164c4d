// Split-K reduction, the second kernel of a product whose k was split over the grid: adds the sums that the ranges of k
// have left in the workspace, in an order that depends on their number alone, and stores the results. It starts while
// the first kernel runs and waits for it.
#pragma once

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

// The sums of a range are [batch][m][ld].
inline void reduce_split_k(const SgemmArgs& p, int splits, const float* sums, int64_t ld, const Context& ctx) {
  const bool many = splits > 16;
  const auto blocks = static_cast<unsigned>(ceil_div(p.m * p.n * p.batch, SUM_THREADS / (many ? 8 : 1)));
  const auto ranges = static_cast<unsigned>(splits);
  many ? launch_kernel<split_k_reduction_kernel<8>>({blocks, SUM_THREADS}, ctx, p, ranges, sums, ld)
       : launch_kernel<split_k_reduction_kernel<1>>({blocks, SUM_THREADS}, ctx, p, ranges, sums, ld);
}

}  // namespace
}  // namespace fl
