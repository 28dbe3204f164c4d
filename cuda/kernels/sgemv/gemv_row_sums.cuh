// What the SGEMV kernels share that put a block, or a cluster of blocks, on a row.
#pragma once

#include "cuda/kernels/common/gemv_rows.cuh"
#include "cuda/kernels/common/launch.cuh"
#include "cuda/kernels/common/ptx.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {

// The sum over each TEAM of neighbouring threads, in all of them; whole blocks have to call it.
template <int THREADS, int TEAM>
__device__ __forceinline__ float sum_over_team(float acc) {
  __shared__ float partial[THREADS / 32];
  float v[1] = {acc};
  __syncwarp();
  sum_over_group<32, 1>(v, threadIdx.x % 32);
  if constexpr (TEAM == 32) return v[0];
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v[0];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < TEAM / 32; ++w) sum += partial[threadIdx.x / TEAM * (TEAM / 32) + w];
  return sum;
}

// The sum over the cluster, in thread 0 of its first block. Each block has called ptx::cluster_arrive_relaxed() before.
__device__ __forceinline__ float sum_over_cluster(float acc, unsigned rank, unsigned cluster) {
#if __CUDA_ARCH__ >= 900
  __shared__ float sums[MAX_ROW_CLUSTER];
  if (cluster == 1) return acc;
  ptx::cluster_wait();  // the first block has begun
  if (threadIdx.x == 0) ptx::store_cluster(ptx::address_in(0, ptx::shared_address(sums + rank)), acc);
  __syncwarp();
  ptx::cluster_arrive();
  ptx::cluster_wait();
  acc = 0.0f;
#pragma unroll
  for (unsigned r = 0; r < MAX_ROW_CLUSTER; ++r) acc += r < cluster ? sums[r] : 0.0f;
#endif
  return acc;
}

}  // namespace fl
