// Boxes of a matrix by the bulk copy engine: the map that describes the matrix to it, made on the host without a call
// of the driver's that could fail later.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/kernels/common/ptx_barriers.cuh"

namespace fl {

// The map of a row-major matrix whose boxes have box_rows x box_cols floats; false if there can be none.
bool tensor_map(CUtensorMap& map, const float* data, int64_t rows, int64_t cols, int64_t ld, int box_rows, int box_cols,
                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

namespace ptx {
// The bytes that a barrier's phase waits for besides its arrivals.
__device__ __forceinline__ void barrier_expect_more(uint32_t barrier, uint32_t bytes) {  // mbarrier.expect_tx
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void load_box(uint32_t to, const CUtensorMap* map, int col, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(col), "r"(row), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {  // prefetch.tensormap
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
}  // namespace ptx

}  // namespace fl
